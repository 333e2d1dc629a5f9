//! Commands of the operator's, which a shell runs beside a server.

use crate::notify;
use crate::open_files;
use std::process::Command;

/// Runs the second argument when the limit of open files is the first one: programs that wait with select(2)
/// cannot deal with more files than they are used to.
const WITH_LIMIT: &str = "ulimit -S -n \"$1\"; exec sh -c \"$2\"";

/// A shell that runs `command`, in the environment that the server was started in.
pub fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    match open_files::before() {
        Some(limit) => shell.args(["-c", WITH_LIMIT, "sh", &limit.to_string(), command]),
        None => shell.args(["-c", command]),
    };
    // What is said to the service manager is for the server to say.
    shell.env_remove(notify::VARIABLE);
    shell
}
