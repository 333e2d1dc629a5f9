//! The page to look at: files that the binary carries, and what browsers may do with them.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::routing::get;

/// Nothing from another host, nothing written into the page, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Where, of which type, and what.
const FILES: [(&str, &str, &str); 8] = [
    ("/", HTML, include_str!("../page/index.html")),
    ("/page.css", STYLE, include_str!("../page/page.css")),
    ("/page.js", SCRIPT, include_str!("../page/page.js")),
    ("/members.js", SCRIPT, include_str!("../page/members.js")),
    ("/clients.js", SCRIPT, include_str!("../page/clients.js")),
    ("/gauges.js", SCRIPT, include_str!("../page/gauges.js")),
    ("/words.js", SCRIPT, include_str!("../page/words.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];

/// The headers of a file of this type.
fn headers(kind: &'static str) -> [(HeaderName, &'static str); 5] {
    [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // A server of another build may answer here next time.
        (CACHE_CONTROL, "no-cache"),
    ]
}

/// Adds the page's files to what is answered.
pub fn put_into(pages: Router) -> Router {
    FILES.iter().fold(pages, |pages, &(place, kind, content)| {
        pages.route(place, get(move || async move { (headers(kind), content) }))
    })
}
