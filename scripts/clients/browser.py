#!/usr/bin/env python3
"""Looks at a page with a headless Chromium, through its debugging pipe: no library is needed.

    browser.py [--size 1280x900] [--scheme light|dark] [--phone] URL STEP...

Steps, one after the other; the first that fails ends it with exit code 1:
    until:SCRIPT    waits until the expression is true, for 20 s at most
    print:SCRIPT    prints the value of an expression
    shot:FILE       writes a picture of the whole page as PNG
    view:FILE       the same of what is in sight
    press:KEY       presses Tab, Enter or Space
    wait:SECONDS    waits
    run:COMMAND     runs a shell command
    tree            prints the accessibility tree, role and name in a line

What the page asked another host for, and what it said on its console, is an error at the end.
"""
import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlsplit

KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Space": (" ", 32, " ")}


class Browser:
    def __init__(self, program, folder):
        to_read, self.to = os.pipe()
        self.source, to_write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        def arrange():
            a, b = os.dup(to_read), os.dup(to_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        line = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                "--no-first-run", "--disable-background-networking", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(line, preexec_fn=arrange, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest, self.number, self.session, self.heard = b"", 0, None, []

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.source, 1 << 16)
            if not part:
                raise SystemExit("the browser is gone")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.number += 1
        order = {"id": self.number, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        os.write(self.to, json.dumps(order).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.heard.append(answer)
                continue
            if "error" in answer:
                raise SystemExit(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def value(self, script):
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise SystemExit(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def open(self, options):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        width, height = map(int, options.size.split("x"))
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=2 if options.phone else 1, mobile=options.phone)
        scheme = {"name": "prefers-color-scheme", "value": options.scheme}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=options.url)

    def shot(self, file, is_whole):
        clip = {}
        if is_whole:
            size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole, **clip)["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(data))

    def press(self, name):
        key, code, text = KEYS[name]
        both = {"key": key, "code": name, "windowsVirtualKeyCode": code}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **both, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **both)

    def step(self, step):
        kind, _, rest = step.partition(":")
        if kind == "until":
            end = time.monotonic() + 20
            # Before the page is there, an expression may find nothing to look at.
            while not self.value(f"(() => {{ try {{ return {rest} }} catch {{ return false }} }})()"):
                if time.monotonic() > end:
                    raise SystemExit(f"never true: {rest}")
                time.sleep(0.1)
        elif kind == "print":
            print(self.value(rest))
        elif kind in ("shot", "view"):
            self.shot(rest, kind == "shot")
        elif kind == "press":
            self.press(rest)
        elif kind == "wait":
            end = time.monotonic() + float(rest)
            while time.monotonic() < end:
                self.value("0")
                time.sleep(0.1)
        elif kind == "run":
            if subprocess.run(rest, shell=True).returncode != 0:
                raise SystemExit(f"failed: {rest}")
        elif kind == "tree":
            for node in self.ask("Accessibility.getFullAXTree")["nodes"]:
                if not node.get("ignored"):
                    print(node["role"]["value"], json.dumps(node.get("name", {}).get("value", ""), ensure_ascii=False))
        else:
            raise SystemExit(f"unknown step {step}")

    def complaints(self, host):
        for message in self.heard:
            params = message.get("params", {})
            if message.get("method") == "Network.requestWillBeSent":
                url = urlsplit(params["request"]["url"])
                if url.scheme in ("http", "https") and url.netloc != host:
                    yield f"asked another host: {params['request']['url']}"
            elif message.get("method") == "Runtime.exceptionThrown":
                yield f"exception: {params['exceptionDetails']}"
            elif message.get("method") == "Log.entryAdded" and params["entry"]["source"] in ("security", "javascript"):
                yield f"log: {params['entry']['text']}"

    def close(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="1280x900")
    parser.add_argument("--scheme", default="light")
    parser.add_argument("--phone", action="store_true")
    parser.add_argument("url")
    parser.add_argument("steps", nargs="*")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        raise SystemExit("no chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            browser.open(options)
            for step in options.steps:
                browser.step(step)
            complaints = list(browser.complaints(urlsplit(options.url).netloc))
        finally:
            browser.close()
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
