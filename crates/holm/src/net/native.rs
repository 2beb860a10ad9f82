//! The place of `net.mode = "native"`, which is not implemented yet: the host's network stack at
//! native speed, with addresses that belong to the guest.
//!
//! guest.toml refuses it: [`NetMode`](crate::config::NetMode) has no such variant, and the keys
//! that come with it (`net.ports`, `net.reserve`, `net.share`, `net.cap`) are planned keys, which
//! are refused by name. The mode will implement [`Mode`](super::mode::Mode), be chosen in
//! [`by_mode`](super::by_mode), and have its programs loaded by [`holm_sys::bpf`].

#[cfg(test)]
mod tests {
    use crate::config;

    #[test]
    fn the_mode_is_refused_and_the_others_are_named() {
        let text = "base = \"b\"\n[net]\nmode = \"native\"\n";
        let refused = config::parse(text, "guest.toml").unwrap_err().to_string();
        for part in ["\"native\" is not known", "\"private\", \"none\", \"host\""] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
