//! The place of `net.mode = "native"`, which is not there yet: the host's stack at native speed, with
//! addresses that are the guest's alone.
//!
//! Until then guest.toml refuses the word: [`NetMode`](crate::config::NetMode) has no variant for it, so
//! nothing here can be reached. The mode begins with an implementation of [`Mode`](super::mode::Mode)
//! and its line in [`by_mode`](super::by_mode); programs are loaded by [`holm_sys::bpf`].

#[cfg(test)]
mod tests {
    use crate::config;

    #[test]
    fn the_mode_is_refused_with_those_that_there_are() {
        let text = "base = \"b\"\n[net]\nmode = \"native\"\n";
        let refused = config::parse(text, "guest.toml").unwrap_err().to_string();
        for word in ["\"native\" is not known", "\"private\", \"none\", \"host\""] {
            assert!(refused.contains(word), "{refused}");
        }
    }
}
