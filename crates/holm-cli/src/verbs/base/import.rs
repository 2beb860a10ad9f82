//! `holm base import`.

use std::ffi::OsString;
use std::time::Instant;

use clap::Args;
use holm::pool::Name;
use holm::store::{self, ImportOptions, Phase, Progress, Remarks, Source};

use crate::context::Context;
use crate::output;
use crate::progress::Line;
use crate::term;
use crate::verb::{Outcome, Run};

const EXAMPLES_AND_SOURCES: &str = "Examples:
  holm base import debian13 debootstrap:trixie+openssh-server,nginx
  holm base import mine ./rootfs.tar.zst
  ssh host tar -c -C / --one-file-system . | holm base import theirs -

SOURCE is one of
  debootstrap:SUITE[+PACKAGE,...]  a Debian, from the host's own apt sources
  busybox                          the host's static busybox
  DIR                              a directory with a root filesystem
  FILE.tar[.gz|.xz|.zst]           the same as a tar
  -                                a tar on standard input";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES_AND_SOURCES)]
pub struct Import {
    /// The new base
    name: String,
    /// What to make it from
    source: OsString,
    /// Debian mirror to use instead of the host's own sources
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
}

impl Run for Import {
    fn run(self, context: &Context) -> Outcome {
        let name = Name::new(&self.name)?;
        let source = Source::parse(&self.source)?;
        let pool = context.new_pool()?;
        let options = ImportOptions { mirror: self.mirror };
        let started = Instant::now();
        let mut line = Line::new(context);
        let result = store::import(&pool, &name, &source, &options, &mut |p| line.show(&text(&p)));
        line.clear();
        let (base, remarks) = result?;
        if !context.quiet {
            remark(&remarks);
        }
        if context.json {
            term::print(&format!("{}\n", output::json(&output::Base::from(&base))));
        } else if !context.quiet {
            let os = base.meta.os.as_deref().unwrap_or("unknown system");
            let (files, size) = (base.meta.files, term::size(base.meta.bytes));
            let seconds = started.elapsed().as_secs_f64();
            term::print(&format!("{name}: {os}, {files} files, {size}, in {seconds:.1} s\n"));
        }
        Ok(0)
    }
}

fn remark(remarks: &Remarks) {
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    if remarks.left_out_devices > 0 {
        let devices = count(remarks.left_out_devices, "device node");
        term::print_error(&format!(
            "holm: {devices} in /dev left out: a guest gets its devices from Holm\n"
        ));
    }
    if remarks.restored_objects > 0 {
        let files = count(remarks.restored_objects, "damaged object");
        term::print_error(&format!(
            "holm: {files} replaced: bases with these files are whole again; restart their guests\n"
        ));
    }
}

fn text(progress: &Progress) -> String {
    let (done, total) = (progress.done, progress.total);
    let amount = match (progress.phase, total) {
        (Phase::Install, Some(total)) => format!("installing {done}/{total}"),
        (Phase::Install, None) => "installing".to_owned(),
        (Phase::Read, Some(total)) => {
            format!("reading {} of {}", term::size(done), term::size(total))
        }
        (Phase::Read, None) => format!("reading {}", term::size(done)),
        (Phase::Sync, _) => "writing to the disk".to_owned(),
    };
    format!("{amount}  {}", progress.note)
}
