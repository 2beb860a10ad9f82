use serde::{Deserialize, Serialize};

/// Declares [`Code`] with the text and the meaning of each.
macro_rules! codes {
    ($($name:ident $text:literal $meaning:literal,)*) => {
        /// A stable identifier of a kind of error, for programs: codes are added, and none changes
        /// its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Code {
            $(#[doc = $meaning] #[serde(rename = $text)] $name,)*
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The code as it is printed.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)*
                }
            }

            /// What has gone wrong, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Code::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    Usage "usage" "The command line is wrong.",
    VerbUnknown "verb-unknown" "Holm has no such verb.",
    NameInvalid "name-invalid" "A guest, base or volume cannot have this name.",
    FeatureUnknown "feature-unknown" "`holm doctor` knows no such feature.",

    GuestNotFound "guest-not-found" "There is no guest of this name.",
    GuestExists "guest-exists" "A guest of this name exists already.",
    GuestRunning "guest-running" "The guest runs, and must not for what was asked.",
    GuestNotRunning "guest-not-running" "The guest does not run, and must for what was asked.",
    GuestRestarting "guest-restarting" "The guest is about to be started again, and must not for what was asked.",
    GuestStarting "guest-starting" "The guest's start has not got as far as its init.",
    GuestEnded "guest-ended" "The guest ended while it was waited for.",
    GuestProtected "guest-protected" "The guest's settings protect it from being removed.",
    GuestUnshared "guest-unshared" "The guest's settings keep it from sharing files with others.",
    ReadinessUnknown "readiness-unknown" "Nobody can know whether the guest is ready.",
    MonitorMissing "monitor-missing" "The guest has no monitor.",
    ConsoleClosed "console-closed" "The monitor closed a console that was attached.",
    Timeout "timeout" "What was waited for has not happened in time.",
    RunRecordUnreadable "run-record-unreadable" "What the host has stored about the running guest cannot be read.",
    StartFailed "start-failed" "The guest could not be started, for a reason that has no code of its own.",
    WorkerKilled "worker-killed" "The process that worked on this one of several names was killed.",

    SettingsInvalid "settings-invalid" "guest.toml has a mistake.",
    SettingsUnreadable "settings-unreadable" "guest.toml cannot be read.",
    SettingsChanged "settings-changed" "guest.toml has been changed meanwhile, by another command or by hand.",
    ChangeInvalid "change-invalid" "A change of a setting is wrong.",
    KeyUnknown "key-unknown" "guest.toml has no such key.",
    EditFailed "edit-failed" "The settings could not be edited.",
    LimitInvalid "limit-invalid" "A limit has a value that makes no sense on this host.",
    LimitUnsupported "limit-unsupported" "This host cannot enforce a limit.",
    LimitRefused "limit-refused" "The kernel refused the value of a limit.",
    CapabilityUnknown "capability-unknown" "There is no such capability.",
    CapabilityRefused "capability-refused" "No guest may have this capability.",

    BaseNotFound "base-not-found" "There is no base of this name.",
    BaseExists "base-exists" "A base of this name exists already.",
    BaseInUse "base-in-use" "Guests stand on the base.",
    BaseDamaged "base-damaged" "A part of the base is missing or cannot be read.",
    SourceInvalid "source-invalid" "This is no source of a base.",
    ImporterMissing "importer-missing" "The program holm-import is not installed.",
    ImportFailed "import-failed" "The import of a base failed.",
    UnifyFailed "unify-failed" "The unification of guests failed.",
    FsckFailed "fsck-failed" "The objects could not be checked.",
    LayerOfOtherBase "layer-of-other-base" "The guest's private layer belongs to another base.",
    DiskUnusable "disk-unusable" "The disk image of a guest is damaged, in use or not as it must be.",
    DiskKindFixed "disk-kind-fixed" "The kind of a private layer cannot change any more.",
    VolumeNotFound "volume-not-found" "There is no volume of this name.",
    VolumeExists "volume-exists" "A volume of this name exists already.",
    VolumeInUse "volume-in-use" "Guests have the volume.",
    VolumeDamaged "volume-damaged" "A part of the volume is missing or cannot be read.",
    InitMissing "init-missing" "The base has no init that Holm knows.",

    InitNotExecutable "init-not-executable" "The guest's init cannot be executed.",
    InitKilled "init-killed" "The guest's first process was killed before init ran.",
    MountFailed "mount-failed" "A mount of the guest could not be made.",
    MountPointUnusable "mount-point-unusable" "Something in the guest is in the way of a mount.",
    MountSourceUnusable "mount-source-unusable" "A path of the host cannot be bound into the guest.",
    DeviceUnusable "device-unusable" "A device of the host cannot be made in the guest.",
    ConfinementFailed "confinement-failed" "The capabilities or the system call filter could not be applied.",

    CommandNotFound "command-not-found" "The guest has no such program.",
    CommandNotExecutable "command-not-executable" "The program cannot be executed in the guest.",
    CommandStuck "command-stuck" "The command does not get as far as its program.",
    UserNotFound "user-not-found" "The guest has no such user or group.",
    WorkingDirectoryUnusable "working-directory-unusable" "The command cannot start in this directory.",

    AddressInUse "address-in-use" "Something on this host has the guest's address.",
    AddressInvalid "address-invalid" "A guest cannot have this address.",
    AddressNotFound "address-not-found" "The host has no such address.",
    UplinkUnknown "uplink-unknown" "The uplink, or its rate, is not known.",
    QdiscInUse "qdisc-in-use" "Another program has set the root qdisc of the uplink.",
    OverReserved "over-reserved" "More than the uplink has would be reserved.",
    AddressesExhausted "addresses-exhausted" "All addresses of the Holm root's subnet are taken.",
    PortInUse "port-in-use" "A port that is to be published is taken.",
    TooManyPorts "too-many-ports" "More ports are to be published than can be recorded for a guest.",
    NetworkFailed "network-failed" "The kernel refused a step of a guest's network.",
    NftMissing "nft-missing" "The program nft is not installed.",
    RulesetRefused "ruleset-refused" "nft refused Holm's ruleset.",

    RequirementMissing "requirement-missing" "The host lacks what every guest needs.",
    FilesystemUnsupported "filesystem-unsupported" "The filesystem of the Holm root cannot hold guests.",
    CgroupUnavailable "cgroup-unavailable" "The host's cgroups cannot be used.",
    CgroupBusy "cgroup-busy" "A cgroup holds processes that it should not.",
    NotPrivileged "not-privileged" "The command was not run as root.",
    RootNotFound "root-not-found" "There is no Holm root.",
    RootUnusable "root-unusable" "The directory cannot be used as a Holm root.",
    RootInUse "root-in-use" "Another command works in the Holm root, or guests run in it.",
    InstancesExhausted "instances-exhausted" "This host has as many Holm roots as it can have.",
    IdsExhausted "ids-exhausted" "The Holm root has no id range left.",
    TerminalsExhausted "terminals-exhausted" "The host has no pseudo-terminal left for a guest.",
    StorageFull "storage-full" "Nothing more can be written where it is needed.",
    SystemError "system-error" "The kernel refused something; the reason has its words.",
}
