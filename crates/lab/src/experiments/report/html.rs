//! The report as one page that needs no other file.

use super::super::declare::Experiment;
use super::super::verdict::{Finding, Judged, Verdict};
use super::Report;
use super::picture;
use super::tables::{Table, named, shown};
use crate::failure::Failure;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:#1a1a1a}\
h1{font-size:1.6em}h2{font-size:1.25em;margin-top:2.2em;border-bottom:1px solid #ccc}h3{font-size:1em;margin-bottom:.3em}\
table{border-collapse:collapse;font-size:13px;margin:.6em 0}th,td{padding:.2em .6em;border-bottom:1px solid #e3e3e3;\
text-align:left;vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}thead th{border-bottom:2px solid #999}\
.wide{overflow-x:auto}svg{max-width:100%;height:auto;margin:.6em 0}.v{white-space:nowrap;font-weight:600}\
.inside{color:#00684b}.outside{color:#a33c00}.other{color:#555}.note{background:#fff3cd;padding:.6em .9em}small{color:#555}";

/// Text as it stands in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> Result<String, Failure> {
        let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
        page.push_str("<meta name=\"viewport\" content=\"width=device-width\">\n<title>The papers' experiments</title>\n");
        page.push_str(&format!(
            "<style>{STYLE}</style></head><body>\n<h1>The papers' experiments, theirs beside ours</h1>\n"
        ));
        self.head(&mut page);
        self.headlines(&mut page);
        for experiment in self.experiments {
            self.experiment(experiment, &mut page)?;
        }
        page.push_str("</body></html>\n");
        Ok(page)
    }

    fn head(&self, page: &mut String) {
        let results = self.results;
        let hosts: Vec<&str> = results.hosts.iter().map(String::as_str).collect();
        page.push_str(&format!(
            "<p>elastripe {}, program {}; run on {}; scale {}, seeds {}; {} of {} cells of all seeds are there. Loads are synthetic stand-ins, made \
             from the seed, where a paper's trace cannot be had. With several seeds a figure is the mean \u{b1} half of the interval of 95 % \
             confidence over those that have the cell, which are named where they are not all of them.</p>\n",
            escaped(&results.build.version),
            escaped(&results.build.hash),
            escaped(&hosts.join(", ")),
            results.scale,
            named(&results.seeds),
            results.cells.0,
            results.cells.1
        ));
        if !results.other_builds.is_empty() {
            let others: Vec<String> = results
                .other_builds
                .iter()
                .map(|build| format!("{}, program {}", escaped(&build.version), escaped(&build.hash)))
                .collect();
            page.push_str(&format!(
                "<p class=\"note\">Some cells are of other builds: {}.</p>\n",
                others.join("; ")
            ));
        }
        if !results.scale.is_full() {
            page.push_str(
                "<p class=\"note\">The loads were shorter than the papers'. That is no evidence for or against them: nothing here is a \
                 verdict.</p>\n",
            );
        }
        page.push_str("<table><tbody>");
        for (verdict, count) in self.summary() {
            page.push_str(&format!("<tr><td class=\"n\">{count}</td><td>{}</td></tr>", verdict.text()));
        }
        page.push_str("</tbody></table>\n");
    }

    fn headlines(&self, page: &mut String) {
        page.push_str("<h2 id=\"headlines\">Headlines</h2>\n<div class=\"wide\"><table><thead><tr><th>row</th><th>the paper says</th>");
        page.push_str("<th>experiment</th><th>paper</th><th>ours</th><th>verdict</th><th>why</th></tr></thead><tbody>\n");
        for judged in &self.judged {
            let parts = |each: &dyn Fn(&Finding) -> String| {
                let parts = judged.findings.iter().map(|finding| escaped(&each(finding)));
                parts.collect::<Vec<_>>().join("<br>")
            };
            page.push_str(&format!(
                "<tr id=\"{id}\"><td>{id}</td><td>{}</td><td><a href=\"#{experiment}\">{experiment}</a></td><td>{}</td><td>{}</td>\
                 <td class=\"v {}\">{}</td><td>{}</td></tr>\n",
                escaped(judged.headline.says),
                parts(&|finding| finding.paper.clone()),
                parts(&|finding| self.ours(finding)),
                class(judged.verdict),
                judged.verdict.text(),
                why(judged),
                id = judged.headline.id,
                experiment = judged.headline.experiment,
            ));
        }
        page.push_str("</tbody></table></div>\n");
    }

    fn experiment(&self, experiment: &Experiment, page: &mut String) -> Result<(), Failure> {
        page.push_str(&format!(
            "<h2 id=\"{}\">{} {}</h2>\n<p><small>{}</small></p>\n<p>{}</p>\n",
            experiment.id,
            experiment.id,
            escaped(experiment.title),
            escaped(experiment.source),
            escaped(experiment.setup)
        ));
        let rows: Vec<String> = self
            .judged
            .iter()
            .filter(|judged| judged.headline.experiment == experiment.id)
            .map(|judged| {
                let id = judged.headline.id;
                format!(
                    "<a href=\"#{id}\">{id}</a> <span class=\"{}\">{}</span>",
                    class(judged.verdict),
                    judged.verdict.text()
                )
            })
            .collect();
        if !rows.is_empty() {
            page.push_str(&format!("<p>Headlines: {}.</p>\n", rows.join(", ")));
        }
        for plot in experiment.plots {
            let Some(table) = self.tables.of(plot.grid) else { continue };
            page.push_str(&format!("<h3>{}</h3>\n", escaped(plot.title)));
            match picture::svg(plot, table, self.results)? {
                Some(svg) => page.push_str(&svg),
                None => page.push_str("<p>Nothing to draw yet.</p>\n"),
            }
        }
        for grid in experiment.grids {
            if let Some(table) = self.tables.of(grid.name) {
                self::table(table, page);
            }
        }
        for missing in experiment.missing {
            page.push_str(&format!("<p>Not tried yet: {}</p>\n", escaped(missing)));
        }
        if !experiment.evidence.is_empty() {
            page.push_str(&format!("<p><small>Explained in {}.</small></p>\n", escaped(experiment.evidence)));
        }
        Ok(())
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Inside => "inside",
        Verdict::Outside => "outside",
        Verdict::NotPossible | Verdict::NotRun | Verdict::Short => "other",
    }
}

/// A reason beside what came out as the paper has it would only confuse.
fn why(judged: &Judged) -> String {
    match judged.verdict {
        Verdict::Inside | Verdict::NotRun | Verdict::Short => String::new(),
        Verdict::Outside | Verdict::NotPossible => escaped(judged.why),
    }
}

fn table(table: &Table, page: &mut String) {
    page.push_str(&format!(
        "<details open><summary>{} ({} {})</summary>\n",
        escaped(table.grid.name),
        table.grid.engine.name(),
        escaped(table.grid.words)
    ));
    if table.missing > 0 {
        page.push_str(&format!("<p>{} cells have not been run.</p>\n", table.missing));
    }
    if table.grid.is_of_folder() {
        page.push_str(
            "<p>Its traces are those of a folder that somebody has: <code>lab run --traces</code>.</p>\n",
        );
    }
    let Some(first) = table.rows.first() else {
        page.push_str("</details>\n");
        return;
    };
    page.push_str("<div class=\"wide\"><table><thead><tr>");
    for (axis, _) in &first.key.labels {
        page.push_str(&format!("<th>{}</th>", escaped(axis)));
    }
    for column in table.grid.columns {
        page.push_str(&format!("<th class=\"n\">{}</th>", escaped(column.name)));
    }
    let has_uneven_seeds = table.has_uneven_seeds();
    if has_uneven_seeds {
        page.push_str("<th class=\"n\">seeds</th>");
    }
    page.push_str("</tr></thead><tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (_, label) in &row.key.labels {
            page.push_str(&format!("<td>{}</td>", escaped(label)));
        }
        for (column, values) in table.grid.columns.iter().zip(&row.values) {
            page.push_str(&format!("<td class=\"n\">{}</td>", escaped(&shown(values, column.digits))));
        }
        if has_uneven_seeds {
            page.push_str(&format!("<td class=\"n\">{}</td>", named(&row.seeds)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></details>\n");
}
