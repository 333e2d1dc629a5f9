//! elastripe
fn main() {}
