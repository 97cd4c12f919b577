use contigo::design::{Design, DesignError, kernel, parameter_number};

/// The text of an error has numbers of the file: making it must not panic either.
fn told<T>(answer: Result<T, DesignError>) -> Option<T> {
    answer.map_err(|error| drop(error.to_string())).ok()
}

pub fn run(bytes: &[u8]) {
    super::map(kernel::any(bytes, ""));
    let Some(design) = told(Design::read(bytes)) else { return };
    // As many cores as the command line would ask about in a second.
    for core in design.instances().take(64) {
        told(core.windows());
        told(core.masters());
        told(core.port());
        told(core.interrupts());
        told(contigo::names::settings_of(&core));
        told(contigo::names::device_of(&core));
        let _ = (
            core.is_hls(),
            core.protocol(),
            contigo::names::node_of(&core),
            core.controller_goes(),
        );
        let _ = (core.clocks().count(), core.registers().count(), contigo::names::driver_of(&core));
        for (name, value) in core.parameters().take(16) {
            assert!(core.parameter(name).is_some(), "{name}={value}");
            let _ = parameter_number(value);
        }
        told(design.core(core.path()));
        super::map(kernel::hwh::map(bytes, core.name()));
    }
    told(design.core("no such core"));
}
