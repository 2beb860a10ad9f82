//! The uplink, and its rate.
//!
//! A root may have a file `uplink.toml`:
//!
//! ```toml
//! interface = "eth0"   # else that of the default route
//! rate = "500M"        # else what the network card says
//! ```

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::config;
use crate::failed::read_if_there;
use crate::net::error::Error;
use crate::net::netlink::Socket;
use crate::net::{link, route};

/// The name of the file in a Holm root.
const FILE: &str = "uplink.toml";

/// The interface that leads outside.
#[derive(Debug)]
pub struct Uplink {
    pub index: u32,
    pub name: String,
    /// Bits in a second.
    pub rate: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    interface: Option<String>,
    rate: Option<String>,
}

/// The uplink of a Holm root, to which `link` leads.
pub fn find(link: &Path) -> Result<Uplink, Error> {
    // For messages: people know the root by its own path.
    let file = fs::read_link(link).unwrap_or_else(|_| link.to_owned()).join(FILE);
    let refuse = |why: String| Error::Uplink { file: file.clone(), why };
    let text = read_if_there(&file)?.unwrap_or_default();
    let settings: Settings =
        toml::from_str(&text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
    let socket = Socket::route()?;
    let index = match &settings.interface {
        Some(name) => link::index(&socket, name)?,
        None => route::uplink(&socket)?,
    };
    let name = match index {
        Some(index) => link::name(&socket, index)?,
        None => None,
    };
    let (Some(index), Some(name)) = (index, name) else {
        return Err(refuse(match settings.interface {
            Some(name) => format!("this host has no interface {name} (`ip link` lists them)"),
            None => "this host has no default route; write interface = \"eth0\"".to_owned(),
        }));
    };
    let rate = match &settings.rate {
        Some(text) => config::rate(text).map_err(|why| refuse(format!("rate: {why}")))?,
        None => speed(&name).ok_or_else(|| {
            refuse(format!("the rate of {name} is not known; write, for example, rate = \"1G\""))
        })?,
    };
    Ok(Uplink { index, name, rate })
}

/// What a network card says of its rate; virtual ones say nothing.
fn speed(interface: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    let megabits: u64 = text.trim().parse().ok().filter(|speed| *speed > 0)?;
    Some(megabits * 1_000_000)
}
