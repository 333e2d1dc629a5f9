"""Submits the cells of `elastripe lab run --executor hq` to a HyperQueue server and waits for them.

Reads a JSON object from standard input: `directory`, of the server or null, `commands`, a list of words each.
Failures are left to the caller, who looks at which cells are there.
"""

import json
import sys

try:
    from hyperqueue import Client, Job
except ImportError as error:
    sys.exit(f"{error}; expected the Python package hyperqueue (pip install hyperqueue)")


def main():
    asked = json.load(sys.stdin)
    client = Client(asked["directory"])
    # A cell that fails keeps none of the others from being run.
    job = Job(max_fails=None, name="elastripe lab")
    for words in asked["commands"]:
        job.program(words, stdout=None, stderr=None)
    failed = client.get_failed_tasks if not client.wait_for_jobs(
        [submitted := client.submit(job)], raise_on_error=False
    ) else None
    if failed:
        for task, context in sorted(failed(submitted).items()):
            print(f"task {task}: {context.error}", file=sys.stderr)


main()
