//! A compiler from ranges of system call numbers to a classic BPF program.
//!
//! When the filter is installed the kernel evaluates it once for each system call number, and
//! caches which numbers are allowed with any arguments (seccomp's action cache, Linux 5.11): those
//! calls never run it again. That takes 0.8 us per instruction, so the program is a binary search
//! whose few returns are shared.

use holm_sys::seccomp::Instruction;

pub const ARCH_X86_64: u32 = 0xc000_003e;
pub const ARCH_I386: u32 = 0x4000_0003;

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JUMP_EQ: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_GE: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

// Offsets in struct seccomp_data.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;
const ARGUMENT_SIZE: u32 = 8;

/// Which values of an argument are meant: its place, from 0, and the low halves. What is tested are
/// `int`s to the kernel, which ignores the high halves.
pub type Test = (u8, &'static [u32]);

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Fails with this errno.
    Errno(u16),
    /// Fails with the errno if all tests of one of these lists are true.
    If(&'static [&'static [Test]], u16),
}

impl Verdict {
    /// The value of the returning instruction, for those that look at no argument.
    fn value(self) -> u32 {
        match self {
            Verdict::Allow => 0x7fff_0000,
            Verdict::Errno(errno) | Verdict::If(_, errno) => 0x0005_0000 | u32::from(errno),
        }
    }
}

/// From this number on (up to the next range's) the verdict holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub from: u32,
    pub verdict: Verdict,
}

/// Turns single numbers with their verdicts into ranges over all numbers; everything else is
/// allowed.
pub fn ranges(rules: &[(u32, Verdict)]) -> Vec<Range> {
    let mut rules = rules.to_vec();
    rules.sort_unstable_by_key(|(number, _)| *number);
    let mut out = vec![Range { from: 0, verdict: Verdict::Allow }];
    for (number, verdict) in rules {
        for range in
            [Range { from: number, verdict }, Range { from: number + 1, verdict: Verdict::Allow }]
        {
            if out.last().is_some_and(|last| last.from == range.from) {
                out.pop();
            }
            if out.last().is_none_or(|last| last.verdict != range.verdict) {
                out.push(range);
            }
        }
    }
    out
}

/// The program for one architecture's ranges each; calls of any other architecture get `other`.
pub fn compile(arches: &[(u32, Vec<Range>)], other: Verdict) -> Vec<Instruction> {
    let mut out = Vec::with_capacity(128);
    out.push(jump_free(LOAD, ARCH));
    for (arch, ranges) in arches {
        let body = section(ranges);
        // Conditional jumps reach 255 instructions: the tables of this project stay far below.
        let skip = u8::try_from(body.len()).expect("a section is shorter than a jump");
        out.push(Instruction { code: JUMP_EQ, jt: 0, jf: skip, k: *arch });
        out.extend(body);
    }
    out.push(jump_free(RETURN, other.value()));
    out
}

fn jump_free(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

/// One architecture: load the number, search its range, return.
fn section(ranges: &[Range]) -> Vec<Instruction> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for range in ranges {
        let after = match range.verdict {
            Verdict::If(_, errno) => [Verdict::Errno(errno), Verdict::Allow],
            plain => [plain, plain],
        };
        for verdict in [range.verdict].into_iter().chain(after) {
            if !verdicts.contains(&verdict) {
                verdicts.push(verdict);
            }
        }
    }
    // Checks of arguments come first: jumps go forward only, and theirs lead to the returns.
    verdicts.sort_by_key(|v| !matches!(v, Verdict::If(..)));
    let mut returns = Vec::new();
    let mut at = ranges.len() - 1;
    for verdict in verdicts {
        returns.push((verdict, at));
        at += match verdict {
            Verdict::If(lists, _) => lists.iter().copied().map(length).sum(),
            _ => 1,
        };
    }
    let mut out = vec![jump_free(LOAD, NUMBER)];
    out.extend(tree(ranges, 0, &returns));
    for (verdict, at) in &returns {
        if let Verdict::If(lists, errno) = verdict {
            let refuse = offset_of(&returns, Verdict::Errno(*errno));
            let allow = offset_of(&returns, Verdict::Allow);
            let mut at = *at;
            for (index, tests) in lists.iter().enumerate() {
                let next = at + length(tests);
                let otherwise = if index + 1 == lists.len() { allow } else { next };
                out.extend(checks(tests, at, refuse, otherwise));
                at = next;
            }
        } else {
            out.push(jump_free(RETURN, verdict.value()));
        }
    }
    out
}

/// How many instructions [`checks`] makes of `tests`: one loads the argument, one compares it with
/// each value.
fn length(tests: &[Test]) -> usize {
    tests.iter().map(|(_, values)| 1 + values.len()).sum()
}

/// Leads to `refuse` if all `tests` are true, otherwise to `next`; its first instruction is the
/// section's number `at`.
fn checks(tests: &[Test], mut at: usize, refuse: usize, next: usize) -> Vec<Instruction> {
    let mut out = Vec::new();
    for (index, (argument, values)) in tests.iter().enumerate() {
        out.push(jump_free(LOAD, ARGUMENTS + ARGUMENT_SIZE * u32::from(*argument)));
        let end = at + length(&[(*argument, *values)]);
        let then = if index + 1 == tests.len() { refuse } else { end };
        for (left, value) in (0..values.len()).rev().zip(*values) {
            at += 1;
            let otherwise = if left == 0 { next } else { at + 1 };
            let (jt, jf) = (distance(at, then), distance(at, otherwise));
            out.push(Instruction { code: JUMP_EQ, jt, jf, k: *value });
        }
        at = end;
    }
    out
}

fn offset_of(returns: &[(Verdict, usize)], verdict: Verdict) -> usize {
    returns.iter().find(|(v, _)| *v == verdict).expect("every verdict has its return").1
}

/// How many instructions a jump at `at` skips to get to `to`.
fn distance(at: usize, to: usize) -> u8 {
    u8::try_from(to - at - 1).expect("a section is shorter than a jump")
}

/// The search over `ranges`, whose first instruction is the section's number `at`; one comparison
/// per border between two ranges.
fn tree(ranges: &[Range], at: usize, returns: &[(Verdict, usize)]) -> Vec<Instruction> {
    if ranges.len() < 2 {
        return Vec::new();
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let low_at = at + 1;
    let high_at = low_at + low.len() - 1;
    let to = |side: &[Range], start: usize| match side {
        [leaf] => distance(at, offset_of(returns, leaf.verdict)),
        _ => distance(at, start),
    };
    let (jt, jf) = (to(high, high_at), to(low, low_at));
    let mut out = vec![Instruction { code: JUMP_GE, jt, jf, k: high[0].from }];
    out.extend(tree(low, low_at, returns));
    out.extend(tree(high, high_at, returns));
    out
}
