#!/usr/bin/env python3
"""man_options.py CLRPERF MAN_PAGE: every option of --help is in the man page, and every option there is taken."""
import re
import subprocess
import sys

# Sections that speak of options of several verbs.
SHARED = {"report and export": ("report", "export")}
TARGETS = "TARGETS"
ANY = {"--help"}


def said(clrperf, *words):
    done = subprocess.run([clrperf, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def options_of(text):
    return set(re.findall(r"--[a-z0-9]+(?:-[a-z0-9]+)*", text))


def sections(page):
    """The tags of each section's paragraphs, where options are documented."""
    tags, name, follows = {}, "", False
    for line in page.splitlines():
        plain = line.replace("\\-", "-").replace("\\fR", "").replace("\\fI", "").replace("\\fB", "")
        heading = re.match(r'\.S[SH] "?([^"]*)"?$', plain)
        if heading:
            name = heading.group(1)
            tags[name] = set()
        elif follows:
            tags[name].update(options_of(plain))
        follows = plain == ".TP"
    return tags


def listed(clrperf, verb):
    """The options in the left column of --help."""
    lines = said(clrperf, verb, "--help").splitlines()
    return options_of("\n".join(line.split("  ")[0] if not line.startswith("  ") else re.split(r"\s{2,}", line.strip())[0]
                                for line in lines if re.match(r"  (-\w, |    )--", line)))


def is_taken(clrperf, verb, option):
    """Of a line with two options the first that there is none of is told; a value of the first is no matter."""
    return f"there is no option '{option}'" not in said(clrperf, verb, option, "x", "--no-option-of-that-name")


def check(clrperf, page):
    tags, wrong = sections(page), []
    verbs = re.findall(r"^  ([a-z0-9]+) ", said(clrperf, "--help"), re.M)
    shared = {verb: set().union(*(tags.get(name, set()) for name, of in SHARED.items() if verb in of)) for verb in verbs}
    for verb in verbs:
        documented = tags.get(verb, set()) | shared[verb]
        options = listed(clrperf, verb)
        if "--pid" in options:
            documented |= tags[TARGETS] & options
        wrong += [f"{verb} {option}: in --help, not in the man page" for option in sorted(options - documented - ANY)]
        wrong += [f"{verb} {option}: in the man page, not taken" for option in sorted(documented - ANY) if not is_taken(clrperf, verb, option)]
        print(f"# {verb}: {len(options)} options listed, {len(documented)} documented")
    wrong += [f"{verb} has no section" for verb in verbs if verb not in tags]
    return wrong if len(verbs) > 5 else ["--help lists no verbs"]


def main():
    with open(sys.argv[2], encoding="utf-8") as page:
        wrong = check(sys.argv[1], page.read())
    for what in wrong:
        print(f"not ok {what}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
