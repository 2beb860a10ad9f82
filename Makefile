# The front door. `make help` lists the targets; CONTRIBUTING.md explains them.
.DEFAULT_GOAL := help
.NOTPARALLEL:
SHELL := /bin/bash
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

PREFIX ?= /usr/local
DESTDIR ?=
TARGET := x86_64-unknown-linux-musl
HOLM := target/$(TARGET)/release/holm
IMPORT := target/release/holm-import
TESTS := target/$(TARGET)/integration/holm-tests
SUDO := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=PATH,CI)
# More arguments for the integration tests: make test-host ARGS='limits --nocapture'
ARGS ?=
# Lanes of the VM: Debian's stable kernel and its newest.
VM_LANES ?= stable backports
# Left out of the VM lanes by `make test`, which would take minutes more: Holm killed at each step,
# and what can be had of the memory of the machine. `make test-vm-all` has it.
LONG := accidents::killed accidents::looks monitor::killed unify::property \
  neighbours::memory_of_the_host
LEAVE_OUT_stable = $(LONG)
# With the newest kernel also what is shown with the stable one and asks little of the kernel: in
# what order Holm does things, what it reads and says, what it keeps on disk.
LEAVE_OUT_backports = $(LONG) accidents:: bases:: completion:: disk::killed disk::limits \
  disk::volumes documents:: fsck:: guest::output monitor:: unify:: volumes:: walk::

## build: the release binaries, holm (static) and holm-import
.PHONY: build
build:
	scripts/deps build
	cargo build --release --locked --target $(TARGET) -p holm-cli
	cargo build --release --locked -p holm-import

## test: unit tests, integration tests on this kernel, integration tests in the VM lanes
.PHONY: test
test: build
	scripts/deps test vm
	$(MAKE) --no-print-directory test-unit test-host test-vm

## test-unit: what can be tested from text, without root
.PHONY: test-unit
test-unit:
	scripts/deps build
	cargo test --locked --workspace

# Tests run the release build. Those that inject a fault run a `holm` of the integration profile
# with that feature: most of its dependencies are built for the tests anyway, while a second fat LTO
# link would take minutes.
.PHONY: integration
integration: build
	scripts/deps test
	cargo build --profile integration --locked --target $(TARGET) -p holm-tests -p holm-probe -p holm-cli \
	  --features holm-cli/fault-injection

## test-host: integration tests against this machine's kernel, as root (ARGS: filter and options)
.PHONY: test-host
test-host: integration
	$(SUDO) $(TESTS) --lane host --holm $(HOLM) --import $(IMPORT) $(ARGS)

## test-vm: the same tests in machines with Debian's kernels and pure cgroup v2 (VM_LANES, ARGS)
.PHONY: test-vm
test-vm: integration
	scripts/deps vm
	$(SUDO) $(TESTS) --prepare $(filter --slow,$(ARGS)) --holm $(HOLM) --import $(IMPORT)
	$(foreach lane,$(VM_LANES),$(SUDO) tests/vm/lane $(lane) $(HOLM) $(IMPORT) $(TESTS) \
	  $(LEAVE_OUT_$(lane):%=--leave-out %) $(ARGS) &&) true

## test-vm-all: the same, with what `make test` leaves out there (an hour at most)
.PHONY: test-vm-all
test-vm-all:
	$(MAKE) --no-print-directory test-vm LEAVE_OUT_stable= LEAVE_OUT_backports=

# What depends on the filesystem of the Holm root. Limits by its quota are tested in the VM lanes.
## test-filesystems: the tests of bases, disks, unification and volumes with roots on XFS and btrfs
.PHONY: test-filesystems
test-filesystems: integration
	$(foreach filesystem,xfs btrfs,$(SUDO) tests/filesystem $(filesystem) sh -ec \
	  'for tests in bases:: disk:: fsck:: unify:: volumes::; do \
	  $(TESTS) --lane host --holm $(HOLM) --import $(IMPORT) $$tests $(ARGS); done' &&) true

# Several at once: they mostly wait, and what a busy host brings about is found too.
## walk: each verb is killed, and each of its system calls fails, at every call (an hour at most)
.PHONY: walk
walk:
	$(MAKE) --no-print-directory test-host ARGS='--slow --test-threads 6 walk'

## property: random changes in unified guests, compared with a plain filesystem (HOLM_SEEDS, _ROUNDS)
.PHONY: property
property:
	HOLM_SEEDS=$${HOLM_SEEDS:-100} HOLM_ROUNDS=$${HOLM_ROUNDS:-8} \
	  $(MAKE) --no-print-directory test-host ARGS='--nocapture unify::property'

## mutate: each safeguard is switched off, and a test must notice (ARGS: names; takes hours)
.PHONY: mutate
mutate: integration
	$(SUDO) $(TESTS) --prepare --holm $(HOLM) --import $(IMPORT)
	$(SUDO) scripts/mutate $(ARGS)

## power: the power of a machine is cut in the middle of commands (ARGS: how often; 50)
.PHONY: power
power: build
	scripts/deps vm
	$(SUDO) tests/vm/power $(or $(ARGS),50) $(HOLM) $(IMPORT)

## lint: formatting, clippy, dependencies and their licences, what the code and the documents keep to
.PHONY: lint
lint:
	scripts/deps build lint
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p holm-init --features program --target $(TARGET) -- -D warnings
	cargo machete
	scripts/deny
	python3 scripts/lint.py
	python3 scripts/architecture.py

## bench: Holm beside its peers, with a report in docs/benchmarks
.PHONY: bench
bench: build
	scripts/deps bench
	cargo run --release --locked -p holm-bench -- $(ARGS)

## demo: several guests on this machine, from import to removal
.PHONY: demo
demo: build
	scripts/deps demo
	$(SUDO) scripts/demo

# Where systemd looks (systemd.unit(5), sysctl.d(5)): it knows two prefixes.
UNITS ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib/systemd/system,/etc/systemd/system)
UNIT_FILES := holm-guests.service holm-unify.service holm-unify.timer
SYSCTLS ?= $(if $(filter /usr /usr/local,$(PREFIX)),$(PREFIX)/lib/sysctl.d,/etc/sysctl.d)

## install: to PREFIX (/usr/local), below DESTDIR
.PHONY: install
install:
	@test -x $(HOLM) -a -x $(IMPORT) || { echo "make install: run make build first" >&2; exit 1; }
	install -D -m755 $(HOLM) $(DESTDIR)$(PREFIX)/bin/holm
	install -D -m755 $(IMPORT) $(DESTDIR)$(PREFIX)/libexec/holm/holm-import
	scripts/install-docs $(HOLM) $(DESTDIR)$(PREFIX)
	install -D -m644 scripts/holm-sysctl.conf $(DESTDIR)$(SYSCTLS)/60-holm.conf
	install -d $(DESTDIR)$(UNITS)
	for unit in $(UNIT_FILES); do \
	  sed 's|@PREFIX@|$(PREFIX)|' scripts/$$unit >$(DESTDIR)$(UNITS)/$$unit || exit 1; done

## uninstall: removes what install has made, and neither guests nor bases (the same PREFIX, DESTDIR)
.PHONY: uninstall
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/holm $(DESTDIR)$(PREFIX)/libexec/holm/holm-import \
	  $(DESTDIR)$(PREFIX)/share/man/man1/holm.1 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holm \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holm \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holm.fish \
	  $(DESTDIR)$(SYSCTLS)/60-holm.conf $(addprefix $(DESTDIR)$(UNITS)/,$(UNIT_FILES))
	rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/libexec/holm 2>/dev/null || true

## clean: removes everything that was built, test images included
.PHONY: clean
clean:
	scripts/clean

## help: this list
.PHONY: help
help:
	@sed -n 's/^## \([^:]*\): \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
