//! What files cost in each kind of root and in volumes, beside a directory of the host, LXC and
//! systemd-nspawn.

mod copy_up;
mod matrix;
mod places;
pub mod tree;

pub use copy_up::run as copy_up;

use matrix::{matrix, measure};
use places::{HOST, Place, Places};

use crate::stage::Stage;

/// A round of programs takes a quarter of a minute in each place.
const ROUNDS_OF_PROGRAMS: usize = 7;

pub fn run(stage: &Stage, n: usize) -> Result<String, String> {
    tree::make(stage)?;
    let places = Places::new(stage)?;
    let files = measure(names(&places.all), n, |index| {
        let place = &places.all[index];
        let mut command = vec![tree::OPS];
        command.extend(place.filter.then_some("--filter"));
        command.extend(place.read_only.then_some("--read-only"));
        command.push(tree::BENCH);
        place.run(&command)
    });
    let with_programs = |place: &&Place| !place.read_only && !place.filter;
    let programs: Vec<&Place> = places.all.iter().filter(with_programs).collect();
    let rounds = n.min(ROUNDS_OF_PROGRAMS);
    let programs = measure(names(programs.iter().copied()), rounds, |index| {
        programs[index].run(&[tree::PROGRAMS])
    });
    Ok(format!(
        "The root is a Debian 13; all places are on {}. `host` is a directory of the host, entered \
         by chroot;\n`filter` the same with a system call filter of one rule: any program in a guest \
         has a filter, also in\nLXC and systemd-nspawn, which have plain directories as roots. `host, \
         again` tells what the machine\ncannot tell apart.\n\n\
         CPU time of operations, the host's in nanoseconds, the others as ratios to the host's in \
         the same\nround (median, p10 to p90):\n\n{}\n\
         Programs, the host's in milliseconds of wall time ({rounds} rounds):\n\n{}",
        stage.filesystem(),
        matrix(&files, HOST),
        matrix(&programs, HOST)
    ))
}

/// Where processes are measured: the kind of a root makes no difference to them.
const OF_PROCESSES: [&str; 6] = [HOST, "host, again", "filter", "overlay", "LXC", "nspawn"];

pub fn processes(stage: &Stage, n: usize) -> Result<String, String> {
    tree::make(stage)?;
    let places = Places::new(stage)?;
    let its = |place: &&Place| OF_PROCESSES.contains(&place.name.as_str());
    let places: Vec<&Place> = places.all.iter().filter(its).collect();
    let columns = measure(names(places.iter().copied()), n, |index| {
        let filter = places[index].filter.then_some("--filter");
        let command: Vec<&str> =
            [tree::OPS].into_iter().chain(filter).chain(["--processes"]).collect();
        places[index].run(&command)
    });
    Ok(format!(
        "CPU time, the children's included; the host's in nanoseconds, the others as ratios to the \
         host's in the\nsame round (median, p10 to p90). The places are those of `bench roots`; \
         `overlay` is a guest.\n\n{}",
        matrix(&columns, HOST)
    ))
}

fn names<'a>(places: impl IntoIterator<Item = &'a Place<'a>>) -> impl Iterator<Item = &'a str> {
    places.into_iter().map(|place| place.name.as_str())
}
