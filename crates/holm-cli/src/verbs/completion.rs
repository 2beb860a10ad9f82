//! `holm completion`.
//!
//! Its scripts ask `holm complete`, so they know guests, bases and keys, and never grow old.

use clap::Args;

use crate::context::Context;
use crate::term;
use crate::verb::{Group, Outcome, Run, Verb};

pub const VERB: Verb = Verb::new::<Completion>(
    Group::Host,
    "completion",
    "Print a script that completes holm's arguments in a shell",
)
.examples(
    "holm completion bash > /etc/bash_completion.d/holm\n\
     holm completion zsh > /usr/local/share/zsh/site-functions/_holm\n\
     holm completion fish > ~/.config/fish/completions/holm.fish",
);

const BASH: &str = r#"_holm() {
    local IFS=$'\n'
    COMPREPLY=($(holm complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace
}
complete -o default -F _holm holm
"#;

const ZSH: &str = r#"#compdef holm
_holm() {
    local -a found
    found=(${(f)"$(holm complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then
        # Behind these more is to be typed.
        compadd -S '' -- ${(M)found:#*[=.]}
        compadd -- ${found:#*[=.]}
    else
        compset -P '*[=:]'
        _files
    fi
}
# The file of a function that is loaded when it is first called is its body; else this is `source`.
if [[ $funcstack[1] = _holm ]]; then _holm "$@"; else compdef _holm holm; fi
"#;

const FISH: &str = r"function __holm_complete
    set -l found (holm complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c holm -f -a '(__holm_complete)'
";

/// Arguments.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

impl Run for Completion {
    fn run(self, _: &Context) -> Outcome {
        term::print(match self.shell.as_str() {
            "bash" => BASH,
            "zsh" => ZSH,
            _ => FISH,
        });
        Ok(0)
    }
}
