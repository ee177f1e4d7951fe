# Short names for what people do; meson and ninja do the work.
PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build
TEST_BUILD ?= build-test
MESON = meson

.PHONY: all deps test unit install bench fuzz lint demo clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@$(MESON) setup $(BUILD) --prefix=$(PREFIX) --buildtype=release >/dev/null

$(TEST_BUILD)/build.ninja:
	@$(MESON) setup $(TEST_BUILD) --buildtype=debugoptimized -Db_sanitize=address,undefined >/dev/null

unit: $(TEST_BUILD)/build.ninja
	@ninja -C $(TEST_BUILD)
	@meson test -C $(TEST_BUILD) --print-errorlogs

clean:
	rm -rf $(BUILD) $(TEST_BUILD)
