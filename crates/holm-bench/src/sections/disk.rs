//! What a guest takes on disk when it is created, and when it has been started once.

use crate::build::SLEEPER;
use crate::free::allocated;
use crate::rounds::Row;
use crate::sections::guests::Sleepers;
use crate::stage::Stage;

pub fn run(stage: &Stage, _: usize) -> Result<String, String> {
    let mut text = String::from(
        "Blocks allocated below the guest's directory, KiB:\n\n\
         | | created | started |\n|---|---:|---:|\n",
    );
    for holm in &stage.holms {
        let mut sleepers = Sleepers::new(holm);
        let names = sleepers.create_more(1, &SLEEPER)?;
        let directory = holm.root.join("guests").join(&names[0]);
        let created = allocated(&directory);
        sleepers.start(&names)?;
        let title = Row::of(holm, "a minimal guest").title();
        text += &format!("| {title} | {created} | {} |\n", allocated(&directory));
    }
    Ok(text)
}
