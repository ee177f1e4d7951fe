# Short names for what people do; meson and ninja do the work.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
TEST_BUILD ?= build-test
JOBS ?= $(shell nproc)
MESON ?= meson

.PHONY: all deps test test-all unit arm64 install bench fuzz lint format demo clean help

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j $(JOBS) program

help:
	@echo "make            build $(BUILD)/src/cli/clrperf"
	@echo "make demo       profile a web service that comes with the sources, draw a flame graph"
	@echo "make test       the tests, with sanitizers; make unit: those that need no .NET; make test-all: on all runtimes"
	@echo "make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)"
	@echo "make deps       install the Debian packages that building needs"
	@echo "make arm64      build for arm64, with Debian's cross compiler and arm64 packages; unit tests with qemu-user"
	@echo "make lint, make fuzz, make bench, make format, make clean"

deps:
	@scripts/install-deps build

$(BUILD)/build.ninja:
	@scripts/install-deps --check build
	@said=$$($(MESON) setup $(BUILD) --prefix=$(PREFIX) --buildtype=release -Db_lto=true) || { echo "$$said" >&2; exit 1; }

# -g1: the lines of a sanitizer's stacks, without what takes longest to compile
$(TEST_BUILD)/build.ninja:
	@scripts/install-deps --check build test
	@said=$$($(MESON) setup $(TEST_BUILD) --buildtype=debugoptimized -Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined \
		-Dtests=enabled) || { echo "$$said" >&2; exit 1; }

unit: $(TEST_BUILD)/build.ninja
	@ninja -C $(TEST_BUILD) -j $(JOBS)
	@$(MESON) test -C $(TEST_BUILD) --no-rebuild --print-errorlogs

test:
	@scripts/test

# on every runtime that packages bring; half an hour
test-all:
	@scripts/test all

install: all
	@$(MESON) configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD) -j $(JOBS) program # and none of the tests, which the next would build, too
	@DESTDIR="$(DESTDIR)" $(MESON) install -C $(BUILD) --no-rebuild --tags program,man

# BENCH="--rows F4,E5" measures only these
bench: all
	@python3 bench/run.py $(BENCH)

fuzz:
	@scripts/fuzz

# cross-compiles, and runs unit tests with qemu-user; installs packages of the architecture arm64
arm64:
	@scripts/arm64

lint:
	@scripts/lint

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

demo:
	@scripts/demo

clean:
	rm -rf $(BUILD) $(TEST_BUILD) build-lint build-fuzz build-arm64
