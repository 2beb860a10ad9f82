//! Guests with many servers, started until the machine is full (the OLS paper, 3.1).

mod bound;
mod disk;
mod guests;
mod parallel;
mod tables;

pub use disk::run as disk;
pub use parallel::run as parallel;
pub use tables::run as tables;
