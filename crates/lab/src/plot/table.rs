//! A table of texts with named columns: what plots are made of, read from CSV or filled by a command.

use crate::failure::Failure;

/// Most bytes of a CSV file: a plot shows a few hundred lines.
pub const CSV_BYTES_MAX: u64 = 64 << 20;

/// Most rows of one.
const ROWS_MAX: usize = 20_000;

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// Names of the columns.
    pub keys: Vec<String>,
    /// Lines of cells, as many as there are columns.
    pub rows: Vec<Row>,
}

/// A line of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its number in the file, or among the rows.
    pub number: usize,
    /// Its cells.
    pub cells: Vec<String>,
}

impl Table {
    /// A table of a command.
    pub fn new(keys: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let rows = rows.into_iter().enumerate();
        Self { keys, rows: rows.map(|(index, cells)| Row { number: index + 1, cells }).collect() }
    }

    /// From CSV: names in the first line, cells perhaps in quotation marks, one row in a line. `name` is
    /// the file's.
    pub fn of_csv(name: &str, text: &str) -> Result<Self, Failure> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let at = |index: usize, what: &str| Failure::new(format!("{name}, line {}: {what}", index + 1));
        let (index, header) = lines.next().ok_or_else(|| {
            Failure::new(format!("{name}: found nothing, expected a line with the names of columns"))
        })?;
        let keys = split(header.trim_start_matches('\u{feff}')).map_err(|what| at(index, what))?;
        let mut rows = Vec::new();
        for (index, line) in lines {
            let cells = split(line).map_err(|what| at(index, what))?;
            if cells.len() != keys.len() {
                return Err(at(
                    index,
                    &format!("found {} cells, expected {} as in the first line", cells.len(), keys.len()),
                ));
            }
            if rows.len() == ROWS_MAX {
                return Err(at(
                    index,
                    &format!("found more than {ROWS_MAX} rows, expected a table of results"),
                ));
            }
            rows.push(Row { number: index + 1, cells });
        }
        Ok(Self { keys, rows })
    }

    /// Where a column is; `option` is what named it.
    pub fn column(&self, option: &str, key: &str) -> Result<usize, Failure> {
        self.keys.iter().position(|known| known == key).ok_or_else(|| {
            Failure::new(format!(
                "{option}: found no column {key:?}, expected one of {}",
                self.keys.join(", ")
            ))
        })
    }

    /// Leaves only the rows in which a column has one of some values.
    pub fn keep(&mut self, key: &str, values: &[String]) -> Result<(), Failure> {
        let column = self.column("--where", key)?;
        self.rows.retain(|row| row.cells.get(column).is_some_and(|cell| values.contains(cell)));
        if self.rows.is_empty() {
            let values = values.join(", ");
            return Err(Failure::new(format!(
                "--where: found no row whose {key} is {values}; all are left out"
            )));
        }
        Ok(())
    }
}

/// A cell as it stands in a line.
pub fn quoted(cell: &str) -> String {
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// The cells of a line.
pub fn split(line: &str) -> Result<Vec<String>, &'static str> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (mut cell, mut from) = (String::new(), quoted);
            loop {
                let (text, after) =
                    from.split_once('"').ok_or("found a quotation mark without its partner")?;
                cell.push_str(text);
                from = after;
                let Some(after) = from.strip_prefix('"') else { break };
                // Two of them are one that belongs to the cell.
                cell.push('"');
                from = after;
            }
            cells.push(cell);
            match from.strip_prefix(',') {
                Some(after) => rest = after,
                None if from.trim().is_empty() => return Ok(cells),
                None => return Err("found text behind a closing quotation mark, expected a comma"),
            }
        } else {
            match rest.split_once(',') {
                Some((cell, after)) => {
                    cells.push(cell.trim().to_owned());
                    rest = after;
                }
                None => {
                    cells.push(rest.trim().to_owned());
                    return Ok(cells);
                }
            }
        }
    }
}
