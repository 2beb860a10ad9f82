//! The small static program that Holm runs beside and inside its guests ([`holm_init`]).
#![no_std]
#![no_main]
#![deny(unsafe_code)]

holm_sys::entry!(holm_init::run);
