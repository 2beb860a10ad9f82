use holm_sys::process::current_cpu;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The launcher on the CPU that it happens to run on, until dropped; what it clones stays there too.
///
/// Launcher and init take turns: while one works the other waits for its word. On two CPUs each word
/// would wake an idle CPU, which takes longer than the work it is told to do.
#[derive(Debug)]
pub struct OneCpu {
    before: Option<CpuSet>,
}

impl OneCpu {
    /// Stays here. Where that is refused nothing is lost but time.
    pub fn stay() -> Self {
        let before = sched_getaffinity(None).ok();
        if let (Some(_), Ok(cpu)) = (&before, current_cpu()) {
            let mut here = CpuSet::new();
            here.set(cpu);
            let _ = sched_setaffinity(None, &here);
        }
        Self { before }
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Lets the calling thread use every CPU that its control group has: a guest's CPUs are what its
/// `cpu.set` says, not what the shell was confined to that started it.
pub fn leave() {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    let _ = sched_setaffinity(None, &all);
}
