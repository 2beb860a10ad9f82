#!/bin/bash
# What programs cost in a root: for each a line with its name, a tab, and milliseconds. The
# directory /bench of the root is where they work; `prepare` fills it, once, before it becomes a base.
# usage: bench-programs [prepare]
set -euo pipefail
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin
mkdir -p /bench
cd /bench
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null LC_ALL=C.UTF-8 HOME=/root
postgres_bin=$(echo /usr/lib/postgresql/*/bin)

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; }

# A repository of some thousand files, with a program of fifty source files in it.
make_tree() {
  mkdir tree tree/program
  cp -r /usr/include /usr/share/perl tree
  for i in {1..50}; do
    printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n' >tree/program/$i.c
    for j in {1..40}; do
      echo "int f${i}_$j(const char *s) { char b[64]; snprintf(b, sizeof b, \"%s %d\", s, $j); return (int)strlen(b) + atoi(s); }"
    done >>tree/program/$i.c
  done
  printf 'libprogram.a: $(patsubst %%.c,%%.o,$(wildcard *.c))\n\tar rcs $@ $^\n' >tree/program/Makefile
  git -C tree init --quiet
  git -C tree add .
  git -C tree -c user.name=bench -c user.email=bench@localhost commit --quiet -m tree
  tar -cf tree.tar tree
  rm -r tree
}

prepare() {
  mkdir base
  for i in {0..99}; do head -c 4096 /dev/zero | tr '\0' x >base/$i; done
  head -c 1048576 /dev/zero | tr '\0' x >base/big
  make_tree
  install -d -o postgres -g postgres pg
  as_postgres "$postgres_bin/initdb" -D pg/data --no-sync >/dev/null
  # The same in a chroot without shared memory, and where there are no other directories.
  printf '%s\n' "unix_socket_directories = '/bench/pg'" "listen_addresses = ''" \
    'dynamic_shared_memory_type = mmap' 'autovacuum = off' >>pg/data/postgresql.conf
  database start
  as_postgres "$postgres_bin/pgbench" -h /bench/pg -i -s 5 -q postgres 2>/dev/null
  database stop
}

database() { as_postgres "$postgres_bin/pg_ctl" -D pg/data -l pg/log -w -s "$1"; }

# timed NAME TIMES COMMAND...: milliseconds for each time.
timed() {
  local name=$1 times=$2 begin=${EPOCHREALTIME/./}
  shift 2
  for ((i = 0; i < times; i++)); do "$@" >/dev/null; done
  awk -v us=$((${EPOCHREALTIME/./} - begin)) -v n="$times" -v name="$name" \
    'BEGIN { printf "%s\t%.3f\n", name, us / n / 1000 }'
}

on_files() {
  rm -rf tree
  sync
  timed "untar" 1 tar -xf tree.tar
  git -C tree status >/dev/null
  timed "git status" 10 git -C tree status
  timed "build" 1 make -s -j2 -C tree/program
  timed "find" 10 find tree -type f -size +100k
  timed "du" 10 du -s tree
  timed "rm -r" 1 rm -r tree
  timed "find /usr" 5 find /usr -xdev -type f -size +100k
  timed "du /usr" 5 du -sx /usr
}

# What was written before is on the disk before it begins: each pays for its own writes.
on_databases() {
  sync
  dbench -c /usr/share/dbench/client.txt -D . -t 3 1 |
    awk '/^Throughput/ { printf "dbench, a megabyte\t%.4f\n", 1000 / $2 }'
  rm -rf clients
  database start
  sync
  for kind in "--select-only" ""; do
    as_postgres "$postgres_bin/pgbench" -h /bench/pg -n -T 3 $kind postgres 2>/dev/null |
      awk -v name="pgbench${kind:+ $kind}, a transaction" \
        '/^tps/ { printf "%s\t%.4f\n", name, 1000 / $3 }'
  done
  database stop
  sync
}

if [ "${1:-}" = prepare ]; then
  prepare
else
  on_files
  on_databases
fi
