//! Guests' cgroups on the real kernel, by the library itself: on hybrid hosts and on pure v2 alike.

mod group;
pub mod life;
pub mod limits;
pub mod live;
