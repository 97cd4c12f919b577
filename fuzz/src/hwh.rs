use contigo::{
    design::{Design, DesignError},
    drivers::ap_ctrl::describe,
};

/// The text of an error has numbers of the file: making it must not panic either.
fn told<T>(answer: Result<T, DesignError>) -> Option<T> {
    answer.map_err(|error| drop(error.to_string())).ok()
}

pub fn run(bytes: &[u8]) {
    super::map(describe::any(bytes, ""));
    let Some(design) = told(Design::read(bytes)) else { return };
    // As many cores as the command line would ask about in a second.
    for core in design.instances().take(64) {
        told(core.windows());
        told(core.masters());
        told(core.port());
        told(core.interrupts());
        told(core.settings());
        told(core.device_name());
        let _ = (core.is_hls(), core.has_start(), core.has_continue(), core.node_name(), core.controller_goes());
        let _ = (core.clocks().count(), core.registers().count(), core.driver());
        for (name, value) in core.parameters().take(16) {
            assert!(core.parameter(name).is_some(), "{name}={value}");
            let _ = core.number(name);
        }
        told(design.core(core.path()));
        super::map(describe::hwh::map(bytes, core.name()));
    }
    told(design.core("no such core"));
}
