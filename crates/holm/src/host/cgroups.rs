//! Cgroups: the layout and where the controllers are.

use super::finding::Answer;
use super::machine::Machine;
use crate::cgroup::{Controller, Layout};

pub(super) fn layout(_: &Machine) -> Answer {
    match Layout::probe().and_then(|layout| Ok((layout.is_pure_v2()?, layout))) {
        Ok((true, layout)) => Answer::Yes(format!("pure v2 at {}", layout.v2_root().display())),
        Ok((false, layout)) => Answer::Partly(format!(
            "hybrid: v1 hierarchies, and v2 at {}",
            layout.v2_root().display()
        )),
        Err(error) => Answer::No(error.to_string()),
    }
}

pub(super) fn controllers(_: &Machine) -> Answer {
    let layout = match Layout::probe() {
        Ok(layout) => layout,
        Err(error) => return Answer::No(error.to_string()),
    };
    let (mut there, mut missing) = (Vec::new(), Vec::new());
    for controller in Controller::ALL {
        match layout.hierarchy_of(controller) {
            Err(error) => return Answer::No(error.to_string()),
            Ok(Some(place)) => there.push(format!("{} at {}", controller.name(), place.display())),
            Ok(None) => missing.push(controller.name()),
        }
    }
    if missing.is_empty() {
        // Where all are in one hierarchy, it is named once.
        let one_place = Controller::ALL.iter().all(|&controller| layout.on_v2(controller));
        let names = Controller::ALL.map(Controller::name).join(", ");
        Answer::Yes(if one_place { format!("{names} on v2") } else { there.join(", ") })
    } else {
        Answer::Partly(format!("without {}", missing.join(", ")))
    }
}
