//! The worked example of a policy of one's own runs, comes to the counts of the built-in policy that it
//! repeats, and stays short enough to be one.

#[path = "../examples/own_policy.rs"]
mod own_policy;

/// As long as an example may be.
const LINES_MAX: usize = 150;

#[test]
fn the_example_runs_and_comes_to_the_counts_of_the_built_in_policy() {
    assert!(include_str!("../examples/own_policy.rs").lines().count() < LINES_MAX);
    // It fails by itself if the counts differ.
    own_policy::main().expect("the example runs");
}
