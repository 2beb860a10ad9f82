//! Runs inside a guest as its root and says what it can do there: one line per attempt, `HOLE`
//! before each that should not have worked (or should have), status 1 if there was any. Static, so
//! that it runs in every guest.

#![forbid(unsafe_code)]

mod caps;
mod copy_up;
mod dev;
mod escape;
mod fds;
mod fill;
mod fuse;
mod kernel;
mod limits;
mod linger;
mod links;
mod locks;
mod mounts;
mod native;
mod netlink;
mod offsets;
mod passing;
mod project;
mod report;
mod sendmmsg;
mod sockets;
mod tree;
mod unix;
mod use_up;

use report::Report;
use std::process::ExitCode;

const USAGE: &str = "\
usage: holm-probe WHAT [ARG...]
  locks [SKIP...]     undo what holds the mounts, but for those at and below SKIP: here, in a new mount namespace, in a
                      new user namespace
  caps [HEX]          the capabilities are the default ones (or HEX)
  seccomp [--32]      every refused call is refused, also in the 32-bit way
  clock               the clock cannot be set
  offsets             the clocks are the guest's own, and their offsets cannot be changed
  dmesg               nothing of the host's kernel log and addresses
  dev [NAME...]       exactly the allowed nodes, and NAME, are in /dev
  ids                 the id maps are a guest's
  net NAME...         exactly these interfaces, and nothing of the host's sockets
  project PATH...     no other project id for these files, nor limits of one
  escape              what the container escapes of the last years needed
  memory BYTES        touch that much memory; prints how far it came
  forks COUNT         have that many processes at once; prints how many
  cpu SECONDS         burn; prints the CPU seconds it got
  inotify COUNT       make that many inotify instances, prints how many, keeps them until its input ends
  use-up WHAT COUNT   take that many terminals, aio-contexts, pipes ..., print how many it got, keep them likewise
  closed-connection   how much arrives of a connection that is closed with data on its way
  linger SOCKET       sends SOCKET descriptors that take a thousand seconds to close, or finds that refused
  mutate SEED COUNT [--no-links] DIR...
                      make random changes, the same in each directory; says where one had another result
  fill WHAT DIR COUNT make that many names, attributes or clones in DIR; prints how many there is room for
  compare DIR DIR     the trees are equal: contents, metadata, hard links
  copy-up DIR         what sees that the first write to a file copies it
  links-make DIR      make files to change in each way
  links-change DIR    change each in its way, and look at it
  links-attributes    which of them change attributes only
  hold-page FILE [--write]
                      map its first page, print process id, address and first byte, keep it until its input ends
  serve NAME          TCP and UDP servers on the same ports as those of other guests, until input ends
  ask PROTOCOL ADDRESS:PORT
                      what such a server answers: tcp, udp, or udp from a connected socket (udp-connected) or
                      one that was never bound (udp-unbound)
  take PATH NAME      take sockets that other processes send to the Unix socket PATH, and serve at each
  hand-over PATH PROTOCOL:ADDRESS:PORT...
                      send it sockets that are bound there, and keep none
  inherited NAME      serve at the socket that is standard input
  burst ADDRESS:PORT COUNT  send so many datagrams of 1000 bytes at once
  close-first ADDRESS:PORT COUNT  open so many TCP connections, and close each before the server does
  flood ADDRESS:PORT  send by TCP as much as it takes, for two minutes
  confined OWN OUTSIDE OTHER...
                      with the address OWN nothing can be done with OTHER, nor sent to OUTSIDE as OTHER
  sockets OWN SECOND OTHER
                      kinds and options of sockets, with the addresses OWN and SECOND, beside a guest with OTHER
  sendmmsg OWN LOOPBACK OTHER [HOST:PORT]
                      datagrams of one call go each to its own destination; HOST:PORT is refused
  hidden              nothing lists the sockets of the network namespace
  take-ports OWN      as many ports as it gets sockets, of those that the kernel chooses from, at OWN
  fuse                serve an empty directory on standard input, a /dev/fuse that is mounted";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match words.as_slice() {
        ["locks", skip @ ..] => locks::everywhere(&mut report, skip),
        ["locks-in", place, skip @ ..] => locks::one_place(&mut report, place, skip),
        ["caps", expected @ ..] => caps::check(&mut report, expected.first().copied()),
        ["seccomp", how @ ..] => kernel::seccomp(&mut report, how.contains(&"--32")),
        ["clock"] => kernel::clock(&mut report),
        ["offsets"] => offsets::check(&mut report),
        ["dmesg"] => kernel::dmesg(&mut report),
        ["dev", extra @ ..] => dev::check(&mut report, extra),
        ["ids"] => kernel::ids(&mut report),
        ["net", names @ ..] => kernel::net(&mut report, names),
        ["project", paths @ ..] => project::check(&mut report, paths),
        ["escape"] => escape::check(&mut report),
        ["memory", bytes] => limits::memory(number(bytes)),
        ["forks", count] => limits::forks(number(count)),
        ["forks-one"] => std::thread::sleep(limits::FORKED_SLEEP),
        ["cpu", seconds] => limits::cpu(number(seconds)),
        ["linger", socket] => linger::send(socket),
        ["copy-up", dir] => copy_up::check(&mut report, dir),
        ["hold-lease", file] => return ended(copy_up::hold_lease(file).is_ok()),
        ["try-lock", how, file] => return ended(copy_up::try_lock(how, file).unwrap_or(true)),
        ["links-make", dir] => return ended(links::make(dir).is_ok()),
        ["links-change", dir] => links::make_changes(&mut report, dir),
        ["links-attributes"] => links::attributes(),
        ["hold-page", file, write @ ..] => {
            return ended(links::hold_page(file, write.contains(&"--write")).is_ok());
        }
        ["fuse"] => fuse::serve(),
        ["serve", name] => native::serve(&mut report, name),
        ["serve-at", name, all @ ..] => native::serve_at(name, all),
        ["ask", protocol, to] => native::ask(protocol, to),
        ["take", path, name] => passing::take(path, name),
        ["hand-over", path, all @ ..] => passing::hand_over(path, all),
        ["inherited", name] => passing::serve_inherited(name),
        ["unix-serve", name] => unix::serve(name),
        ["unix-ask", names @ ..] => unix::ask(names),
        ["close-first", to, count] => native::close_first(to, number(count)),
        ["burst", to, count] => native::burst(to, number(count)),
        ["flood", to] => native::flood(to),
        ["flood-addresses", network] => native::flood_addresses(network),
        ["flood-ports", to, count] => native::flood_ports(to, number(count)),
        ["confined", own, outside, others @ ..] => {
            native::confined(&mut report, own, outside, others);
        }
        ["sendmmsg", own, loopback, other, hosts @ ..] => {
            sendmmsg::check(&mut report, [own, loopback, other], hosts.first().copied());
        }
        ["take-ports", own] => sockets::take_ports(&mut report, own),
        ["hidden"] => sockets::hidden(&mut report),
        ["sockets", own, second, other] => sockets::check(&mut report, own, second, other),
        ["inotify", count] => limits::inotify(number(count)),
        ["closed-connection"] => use_up::closed_connection(),
        ["mutate", seed, count, "--no-links", roots @ ..] => {
            return ended(tree::mutate(number(seed), number(count), false, roots));
        }
        ["mutate", seed, count, roots @ ..] => {
            return ended(tree::mutate(number(seed), number(count), true, roots));
        }
        ["compare", one, other] => return ended(tree::compare(one, other)),
        ["fill", what, dir, count] => fill::fill(what, dir.as_ref(), number(count)),
        ["use-up", what, count] => use_up::use_up(what, number(count)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    report.end()
}

fn ended(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}
