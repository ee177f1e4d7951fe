#!/usr/bin/env python3
"""languages_test.py: chains of waiting tasks, of compilers that lay out their state machines otherwise than C#'s."""
import collections
import json
import os
import re
import shutil
import subprocess

from live import PLAIN_ENVIRONMENT, Checks, Target, Work, clrperf, need_command, succeeded

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "languages")
PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>
<OutputType>Exe</OutputType><TargetFramework>net{version}</TargetFramework><UseAppHost>false</UseAppHost>
<InvariantGlobalization>true</InvariantGlobalization><SatelliteResourceLanguages>en</SatelliteResourceLanguages>
<NuGetAudit>false</NuGetAudit><RootNamespace></RootNamespace></PropertyGroup>
<ItemGroup>{items}</ItemGroup></Project>
"""

# What the chains wait for, and who awaits whom at which of its awaits, the innermost first.
FSHARP = collections.Counter({
    ("Task", (("Waits.third", 3), ("Waits.outer", 0), ("Waits.untyped", 0))): 1,
    ("Task.Delay", (("Waits.later", 1), ("Waits.looped", 0))): 1,
    ("Task", (("Waits.valued", 0),)): 1,
    ("Task", (("Waits.back", 0),)): 1,
    ("ready", (("Waits.running", 0),)): 1,  # F# does not tell it from one that runs
})
VISUAL_BASIC = collections.Counter({
    ("Task", (("Waits.Third", 2), ("Waits.lambda #1", 0), ("Waits.Outer", 0))): 1,
    ("running", (("Waits.Running", -1),)): 1,
})


def build(work, language):
    folder = work.file(language)
    os.mkdir(folder)
    shutil.copy(os.path.join(SOURCES, f"waits.{language}"), folder)
    version = ".".join(subprocess.run(["dotnet", "--version"], capture_output=True, text=True, check=True).stdout.split(".")[:2])
    with open(os.path.join(folder, f"waits.{language}proj"), "w", encoding="utf-8") as project:
        project.write(PROJECT.format(version=version, items='<Compile Include="waits.fs" />' if language == "fs" else ""))
    succeeded(subprocess.run(["dotnet", "build", "-m:1", "-c", "Release", "-o", os.path.join(folder, "out"), folder],
                             capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL))
    return ["dotnet", os.path.join(folder, "out", "waits.dll")]


def short(frame):
    return re.sub(r" closure line \d+| \(async\)", "", frame["function"])


def chains_of(view):
    found = collections.Counter()
    for chain in view["chains"]:
        frames = tuple((short(frame), frame["state"]) for frame in chain["frames"])
        found[chain["waiting_on"] or chain["wait"], frames] += chain["count"]
    return found


def look(work, language):
    with Target(build(work, language), env={**PLAIN_ENVIRONMENT, "DOTNET_EnableDiagnostics": "0"}) as target:
        return json.loads(succeeded(clrperf("stack", "--async", "--json", "-p", target.pid)).stdout)["async"]


def fsharp(checks, work):
    found = chains_of(look(work, "fs"))
    checks.check("tasks of F#", found == FSHARP, f"missing {dict(FSHARP - found)}, more {dict(found - FSHARP)}")


def visual_basic(checks, work):
    view = look(work, "vb")
    found = chains_of(view)
    checks.check("async methods of Visual Basic", found == VISUAL_BASIC,
                 f"missing {dict(VISUAL_BASIC - found)}, more {dict(found - VISUAL_BASIC)}")
    with open(os.path.join(SOURCES, "waits.vb"), encoding="utf-8") as source:
        marks = {line.split("' ")[1].strip(): number for number, line in enumerate(source, 1) if "Await" in line and "' " in line}
    lines = {re.sub(r"Waits\.| #1", "", short(frame)).lower(): frame["line"] for chain in view["chains"] for frame in chain["frames"]
             if frame["state"] >= 0}
    checks.check("each awaits at its line", lines == marks, f"{lines}, not {marks}")


def main():
    checks = Checks()
    need_command("dotnet")
    with Work() as work:
        checks.run("fsharp", fsharp, work)
        checks.run("visual basic", visual_basic, work)
    checks.exit()


if __name__ == "__main__":
    main()
