//! Figures as SVG and PNG: complete, alike every time, and refused with a reason where nothing sensible can
//! be drawn.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::figure::{Kind, Spec, of_table};
use super::table::Table;
use super::*;

fn table(text: &str) -> Table {
    Table::of_csv("t.csv", text).unwrap()
}

fn spec(x: &str, y: &str, series: &str) -> Spec {
    let keys = |text: &str| text.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect();
    Spec { x: keys(x), y: keys(y), series: keys(series), about: "a test".to_owned(), ..Spec::default() }
}

fn svg(text: &str, spec: &Spec) -> String {
    of_table(&table(text), spec).unwrap().svg().unwrap()
}

fn refused(text: &str, spec: &Spec) -> String {
    let figure = Table::of_csv("t.csv", text).and_then(|table| of_table(&table, spec));
    figure.and_then(|figure| figure.svg()).unwrap_err().to_string()
}

const SCHEMES: &str = "scheme,queue-depth,latency_us_p99\nraid,1,300\nraid,8,900\nraid,64,7000\neplog,1,200\neplog,8,250\n\
                       eplog,64,1400\nparity-log,1,420\nparity-log,8,800\nparity-log,64,6100\n";

/// Elements are closed in the order in which they were opened, and nothing of the text is mistaken for one.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("no end of <{part}"));
        assert!(!text.contains('>'), "{text}");
        let name = tag.split_whitespace().next().unwrap().trim_end_matches('/');
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn lines_have_labels_units_and_every_name() {
    let spec = spec("queue-depth", "latency_us_p99", "scheme");
    let drawn = svg(SCHEMES, &spec);
    assert_well_formed(&drawn);
    assert_eq!(drawn, svg(SCHEMES, &spec), "the same bytes again");
    for text in ["raid", "eplog", "parity-log", "queue depth (requests, log scale)", "p99 response time (ms)"]
    {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
    for tick in [">1<", ">8<", ">64<", ">6<"] {
        assert!(drawn.contains(tick), "{tick}: {drawn}");
    }
    // One marker for each point and one in the legend; three lines and their three samples.
    assert_eq!(drawn.matches("translate").count() - drawn.matches("rotate").count(), 9 + 3);
    assert_eq!(drawn.matches(r#"stroke-linejoin="round""#).count(), 3 + 3);
    assert!(drawn.contains(r#"width="252pt""#), "a column");
    let wide = Spec { width: Width::Page, ..spec };
    assert!(svg(SCHEMES, &wide).contains(r#"width="516pt""#), "the page");
}

#[test]
fn bars_stand_by_category_with_hatches() {
    let spec = Spec { kind: Some(Kind::Bars), ..spec("queue-depth", "latency_us_p99", "scheme") };
    let drawn = svg(SCHEMES, &spec);
    assert_well_formed(&drawn);
    // raid and parity-log are hatched: a pattern each, on three bars and in the legend.
    assert_eq!(drawn.matches("<pattern").count(), 2);
    assert_eq!(drawn.matches("url(#hatch1)").count(), 4);
    assert_eq!(drawn.matches("url(#hatch2)").count(), 4);
    assert!(drawn.contains(">1.4<"), "the value above a bar: {drawn}");
    let turned = Spec { kind: Some(Kind::Bars), ..self::spec("scheme", "latency_us_p99", "queue-depth") };
    assert!(svg(SCHEMES, &turned).contains(">queue depth<"), "what the numbers of the legend are");
}

#[test]
fn a_scheme_looks_alike_in_every_figure() {
    let two = "scheme,queue-depth,y_us\neplog,1,1\neplog,2,2\nraid,1,1\nraid,2,2\n";
    let turned = "scheme,queue-depth,y_us\nraid,1,1\nraid,2,2\neplog,1,1\neplog,2,2\n";
    let colours = |text: &str| {
        let drawn = svg(text, &spec("queue-depth", "y_us", "scheme"));
        let style = |name: &str| {
            let at = drawn.find(&format!(">{name}<")).unwrap();
            let from = drawn[..at].rfind("stroke=\"#").unwrap();
            drawn[from..from + 16].to_owned()
        };
        (style("raid"), style("eplog"))
    };
    assert_eq!(colours(two), colours(turned));
    assert_ne!(colours(two).0, colours(two).1);
}

/// Parts of a sum: their heights add up, and the sum stands above.
#[test]
fn parts_are_stacked_up_to_their_sum() {
    let text = "scheme,user_bytes,raid_bytes\nraid,1,2\neplog,1,0.5\n";
    let spec = Spec { kind: Some(Kind::Stacked), ..spec("scheme", "user_bytes,raid_bytes", "") };
    let Body::Bars(bars) = of_table(&table(text), &spec).unwrap().panels.remove(0).body else { panic!() };
    assert_eq!(bars.sums(), [3.0, 1.5]);
    let drawn = svg(text, &spec);
    assert!(drawn.contains(">3<") && drawn.contains(">1.5<"), "{drawn}");
    let negative = refused("scheme,user_bytes,raid_bytes\nraid,1,-2\n", &spec);
    assert!(negative.contains("found -2, expected parts of a sum"), "{negative}");
    let log = refused(text, &Spec { log_y: true, ..spec });
    assert!(log.contains("parts of a sum mean nothing on a logarithmic axis"), "{log}");
}

#[test]
fn rows_that_differ_in_the_seed_are_one_point_with_its_spread() {
    let text = "scheme,seed,erases\nraid,1,10\nraid,2,20\nraid,3,60\neplog,1,5\neplog,2,5\neplog,3,5\n";
    let found = refused(text, &spec("scheme", "erases", ""));
    assert!(found.contains("found rows 2 and 3 for raid, expected one"), "{found}");
    let over = Spec { over: vec!["seed".to_owned()], ..spec("scheme", "erases", "") };
    let Body::Bars(bars) = of_table(&table(text), &over).unwrap().panels.remove(0).body else { panic!() };
    let raid = bars.series[0].values[0];
    assert!((raid.value.unwrap() - 30.0).abs() < 1e-9);
    assert_eq!(raid.range, Some((10.0, 60.0)));
    assert_well_formed(&svg(text, &over));
    let twice = refused("scheme,seed,erases\nraid,1,10\nraid,1,20\n", &over);
    assert!(twice.contains("found rows 2 and 3"), "{twice}");
}

#[test]
fn what_cannot_be_drawn_is_refused_with_its_place() {
    let plain = spec("scheme", "y", "");
    let log = Spec { log_y: true, ..plain.clone() };
    let labelled = |spec: Spec| Spec { y_label: Some("both (s)".to_owned()), ..spec };
    let cases = [
        ("", plain.clone(), "t.csv: found nothing"),
        ("scheme,y\n", plain.clone(), "found a table without rows"),
        ("scheme,y\nraid,1,2\n", plain.clone(), "t.csv, line 2: found 3 cells, expected 2"),
        ("scheme,y\n\"raid,1\n", plain.clone(), "line 2: found a quotation mark without its partner"),
        ("scheme,z\nraid,1\n", plain.clone(), "--y: found no column \"y\", expected one of scheme, z"),
        ("x,y\nraid,1\n", plain.clone(), "--x: found no column \"scheme\""),
        ("scheme,y\nraid,fast\n", plain.clone(), "row 2, column y: found \"fast\", expected a number"),
        ("scheme,y\nraid,inf\n", plain.clone(), "row 2, column y: found \"inf\""),
        ("scheme,y\nraid,NaN\neplog,\n", plain.clone(), "plot of y: found no number"),
        ("scheme,y\nraid,1e31\n", plain.clone(), "expected a number of at most 1e30"),
        (
            "scheme,y\nraid,-3\neplog,1\n",
            log.clone(),
            "found -3, expected 1e-30 to 1e30 on a logarithmic axis",
        ),
        ("scheme,y\nraid,0\n", log, "found 0, expected 1e-30"),
        (
            "scheme,y\nraid,1\n",
            Spec { kind: Some(Kind::Lines), ..plain.clone() },
            "found \"raid\", expected numbers",
        ),
        ("scheme,y\nraid,1\n", Spec { x_scale: Some(Scale::Log), ..plain.clone() }, "--log-x"),
        ("scheme,y_us,z\nraid,1,2\n", spec("scheme", "y_us,z", ""), "expected --y-label"),
        ("y,n\n1,0\n2,-1\n", Spec { x_scale: Some(Scale::Log), ..spec("n", "y", "") }, "plot of n: found"),
    ];
    for (text, spec, expected) in cases {
        let found = refused(text, &spec);
        assert!(found.contains(expected), "{text:?}: {found}");
    }
    assert_well_formed(&svg("scheme,y_us,z\nraid,1,2\n", &labelled(spec("scheme", "y_us,z", ""))));
    let many = (0..9).fold("name,n,y\n".to_owned(), |text, i| format!("{text}s{i},1,1\ns{i},2,2\n"));
    let found = refused(&many, &spec("n", "y", "name"));
    assert!(found.contains("found 9 series, expected at most 8"), "{found}");
    let long = format!("x,y\n{}", "1,2\n".repeat(20_001));
    let found = Table::of_csv("t.csv", &long).unwrap_err().to_string();
    assert!(found.contains("t.csv, line 20002: found more than 20000 rows"), "{found}");
    let many = (0..401).fold("name,y\n".to_owned(), |text, i| format!("{text}s{i},1\n"));
    assert!(refused(&many, &spec("name", "y", "")).contains("found 401 bars, expected at most 400"));
}

/// One point, no spread, negative numbers, gaps, enormous and tiny ones: a picture whose numbers are numbers.
#[test]
fn odd_numbers_still_give_a_picture() {
    let log = |spec: Spec| Spec { log_y: true, ..spec };
    let lines = Spec { kind: Some(Kind::Lines), ..spec("n", "y", "") };
    let bars = Spec { kind: Some(Kind::Bars), ..spec("n", "y", "") };
    let cases = [
        "n,y\n5,7\n",
        "n,y\n0,0\n",
        "n,y\n1,0\n2,0\n",
        "n,y\n1,-5\n2,5\n",
        "n,y\n1,-5\n2,-7\n",
        "n,y\n1,3\n2,\n3,5\n4,-\n5,NaN\n",
        "n,y\n1,1e30\n2,-1e30\n",
        "n,y\n1,1e-30\n2,2e-30\n",
        "n,y\n1,1000000000000000\n2,1000000000000001\n",
        "n,y\n-1e30,1\n1e30,2\n",
        "n,y\n1,1e-300\n2,1\n",
    ];
    for text in cases {
        assert_well_formed(&svg(text, &lines));
        assert_well_formed(&svg(text, &bars));
    }
    for text in ["n,y\n1,5\n", "n,y\n1,1e-30\n2,1e30\n", "n,y\n1,20\n2,60\n", "n,y\n1,10\n2,10\n"] {
        assert_well_formed(&svg(text, &log(lines.clone())));
        assert_well_formed(&svg(text, &log(bars.clone())));
    }
}

#[test]
fn sizes_are_numbers_and_keep_their_names() {
    let text = "chunk-size,y_us\n4KiB,1\n64KiB,2\n1MiB,3\n";
    let Body::Lines(lines) =
        of_table(&table(text), &spec("chunk-size", "y_us", "")).unwrap().panels.remove(0).body
    else {
        panic!("no lines");
    };
    assert_eq!((lines.x.scale, lines.x.text().as_str()), (Scale::Log, "chunk size (log scale)"));
    let named: Vec<_> = lines.ticks.iter().map(|(number, name)| (*number, name.as_str())).collect();
    assert_eq!(named, [(4096.0, "4KiB"), (65_536.0, "64KiB"), (1_048_576.0, "1MiB")]);
}

/// Zero has no place on a logarithmic axis, and on a linear one the small numbers lie on each other: they
/// stand side by side.
#[test]
fn zero_stands_beside_numbers_that_are_far_apart() {
    let text = "cache-slots,y_us\n0,9\n16,8\n64,7\n256,6\n1024,5\n";
    let Body::Lines(lines) =
        of_table(&table(text), &spec("cache-slots", "y_us", "")).unwrap().panels.remove(0).body
    else {
        panic!("no lines");
    };
    assert_eq!((lines.x.scale, lines.x.text().as_str()), (Scale::Linear, "cache slots, not to scale"));
    let named: Vec<_> = lines.ticks.iter().map(|(number, name)| (*number, name.as_str())).collect();
    assert_eq!(named, [(0.0, "0"), (1.0, "16"), (2.0, "64"), (3.0, "256"), (4.0, "1024")]);
    let places: Vec<f64> = lines.series[0].values.iter().map(|(x, _)| *x).collect();
    assert_eq!(places, [0.0, 1.0, 2.0, 3.0, 4.0]);
    let drawn = svg(text, &spec("cache-slots", "y_us", ""));
    assert!(
        ["0", "16", "64", "256", "1024"].iter().all(|name| drawn.contains(&format!(">{name}<"))),
        "{drawn}"
    );
}

/// Bars on a logarithmic axis stand on a power of ten below the least, so that this is more than nothing.
#[test]
fn bars_on_a_logarithmic_axis_stand_on_a_power_of_ten() {
    let logarithmic = Spec { log_y: true, ..spec("scheme", "y_us", "") };
    let drawn = svg("scheme,y_us\nraid,303\neplog,999\n", &logarithmic);
    assert!(drawn.contains("(\u{b5}s, log scale)") && drawn.contains(">100<"), "{drawn}");
    let heights: Vec<f64> = drawn
        .lines()
        .filter(|line| line.starts_with("<rect") && line.contains("stroke="))
        .filter_map(|line| line.split("height=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    // log(3.03) to log(9.99), from 100.
    assert_eq!(heights.len(), 2, "{drawn}");
    assert!((heights[0] / heights[1] - 3.03_f64.ln() / 9.99_f64.ln()).abs() < 0.01, "{heights:?}");
    // What came out alike each time has no spread.
    let twice = Spec { over: vec!["seed".to_owned()], ..spec("scheme", "y_us", "") };
    let alike = svg("scheme,seed,y_us\nraid,1,3\nraid,2,3\n", &twice);
    assert!(!alike.contains("stroke-width=\"0.7\""), "{alike}");
}

#[test]
fn names_of_any_kind_become_text() {
    let text = "name,y\n\"a <b> & \"\"c\"\", \u{1}d\",1\n\u{4e2d}\u{6587} very long names of categories that go on and on and on,2\n";
    let spec = Spec {
        title: Some("<script>".to_owned()),
        bands: vec![Band { name: "paper's \"range\"".to_owned(), low: 0.5, high: 1.5 }],
        ..spec("name", "y", "")
    };
    let drawn = svg(text, &spec);
    assert_well_formed(&drawn);
    for text in [
        "a &lt;b&gt; &amp; &quot;c&quot;",
        "&lt;script&gt;",
        "paper's &quot;range&quot;",
        "very long names",
        "categories that go",
    ] {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
}

#[test]
fn columns_of_simulations_have_units() {
    for key in ["write_amplification", "latency_us_p999", "host_bytes_read", "erases_mean", "queue-depth"] {
        let (label, unit) = labels::of(key);
        assert!(!label.contains('_') && unit.is_some(), "{key}: {label} {unit:?}");
    }
    assert_eq!(labels::of("host_bytes_read"), ("host read".to_owned(), Some("bytes".to_owned())));
    assert_eq!(labels::of("my_own-thing"), ("my own thing".to_owned(), None));
    assert_eq!(labels::of("_"), (String::new(), None));
}

#[cfg(feature = "png")]
mod pixels {
    use super::super::png::from_svg;
    use super::*;
    use std::io::Cursor;

    fn decoded(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = ::png::Decoder::new(Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.width, info.height, pixels)
    }

    #[test]
    fn a_png_has_300_dots_in_an_inch_and_the_colours() {
        for (width, pixels) in [(Width::Column, 1050), (Width::Page, 2150)] {
            let spec = Spec { width, ..spec("queue-depth", "latency_us_p99", "scheme") };
            let svg = svg(SCHEMES, &spec);
            let bytes = from_svg(&svg, width.points(), "a test").unwrap();
            let (found, height, colours) = decoded(&bytes);
            assert_eq!(found, pixels);
            assert!(height > pixels / 4 && height < pixels, "{height}");
            assert_eq!(colours.len(), (found * height * 3) as usize);
            for colour in ["#0072B2", "#E69F00", "#009E73"] {
                let part = |at: usize| u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
                let wanted = [part(1), part(3), part(5)];
                assert!(colours.chunks(3).filter(|pixel| *pixel == wanted).count() > 100, "{colour}");
            }
            assert_eq!(bytes, from_svg(&svg, width.points(), "a test").unwrap(), "the same bytes again");
        }
    }

    /// Without a font, text would vanish in silence.
    #[test]
    fn text_is_drawn() {
        let page = |text: &str| {
            let text = format!(r#"<text x="5" y="15" font-size="10">{text}</text>"#);
            let svg = format!(
                r##"<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="20pt" viewBox="0 0 72 20" font-family="Roboto"><rect width="72" height="20" fill="#ffffff"/>{text}</svg>"##
            );
            let (_, _, pixels) = decoded(&from_svg(&svg, 72.0, "a test").unwrap());
            pixels.chunks(3).filter(|pixel| pixel[0] < 128).count()
        };
        assert_eq!(page(""), 0);
        assert!(page("i") > 20, "{}", page("i"));
        assert!(page("\u{b5}\u{d7}\u{2212}\u{2026}") > 100);
    }

    /// The table of advance widths is that of the font that is drawn.
    #[test]
    fn text_is_as_long_as_the_layout_believes() {
        use resvg::usvg;
        let mut options = usvg::Options::default();
        std::sync::Arc::make_mut(&mut options.fontdb)
            .load_font_data(include_bytes!("../../fonts/Roboto-Regular.ttf").to_vec());
        let length = |text: &str| {
            let text = text::escaped(text);
            let svg = format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="9000" height="50"><text xml:space="preserve" font-family="Roboto" y="30" font-size="20">{text}</text></svg>"#
            );
            let tree = usvg::Tree::from_str(&svg, &options).unwrap();
            f64::from(tree.root().abs_layer_bounding_box().width())
        };
        for c in ' '..='~' {
            // Between two marks, so that only advances count; kerning is left out of account.
            let drawn = length(&format!("H{}", format!("{c}H").repeat(30))) - length("H");
            let believed = text::width(&format!("{c}H").repeat(30), 20.0);
            assert!((drawn - believed).abs() < 0.03 * believed, "{c:?}: drawn {drawn}, believed {believed}");
        }
    }
}
