//! The answers of `contigo fpga`, as JSON and as tables.

use super::listed;
use contigo_bringup::bitstream::{Bitstream, Image};
use contigo_bringup::fpga::{Around, Bridge, Fpga, Loaded};
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub(super) struct FileReport {
    file: String,
    format: String,
    design: Option<String>,
    part: Option<String>,
    date: Option<String>,
    idcode: Option<String>,
    device: Option<&'static str>,
    family: Option<String>,
    bytes: usize,
    order: String,
    partial: Option<bool>,
    encrypted: bool,
}

impl FileReport {
    pub(super) fn of(file: &Path, image: &Image) -> Self {
        let Bitstream {
            format,
            design,
            part,
            date,
            idcode,
            order,
            payload,
            partial,
            encrypted,
            ..
        } = &image.bitstream;
        Self {
            file: file.display().to_string(),
            format: format.to_string(),
            design: design.clone(),
            part: part.clone(),
            date: date.clone(),
            idcode: idcode.map(|idcode| format!("{idcode:#010x}")),
            device: image.bitstream.device().map(|part| part.name),
            family: image.bitstream.family().map(|family| family.to_string()),
            bytes: payload.len(),
            order: order.to_string(),
            partial: *partial,
            encrypted: *encrypted,
        }
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let text = |text: &Option<String>| {
            text.clone().unwrap_or_else(|| "the file does not say".to_owned())
        };
        let device = match (self.device, &self.family) {
            (Some(device), Some(family)) => format!("{device}, {family}"),
            (None, Some(family)) => family.clone(),
            _ => "not known here".to_owned(),
        };
        let whole = match self.partial {
            Some(true) => "a part of the fabric",
            Some(false) => "the whole fabric",
            None => "the file does not say",
        };
        let mut rows = vec![
            ("format", self.format.clone()),
            ("design", text(&self.design)),
            ("part", text(&self.part)),
            ("date", text(&self.date)),
            ("IDCODE", text(&self.idcode)),
            ("device", device),
            ("configuration", format!("{} bytes", self.bytes)),
            ("for", whole.to_owned()),
        ];
        if self.format != ".rbf" {
            rows.push(("byte order", self.order.clone()));
        }
        if self.encrypted {
            rows.push(("encrypted", "yes".to_owned()));
        }
        rows
    }

    pub(super) fn listed(&self) -> String {
        listed(&self.rows())
    }
}

#[derive(Serialize)]
pub(super) struct BridgeEntry {
    name: String,
    open: Option<bool>,
}

impl BridgeEntry {
    pub(super) fn all(bridges: &[Bridge]) -> Vec<Self> {
        bridges.iter().map(|bridge| Self { name: bridge.name.clone(), open: bridge.open }).collect()
    }

    fn words(bridges: &[Self]) -> String {
        let word = |bridge: &Self| {
            let state = match bridge.open {
                Some(true) => "open",
                Some(false) => "closed: an access through it hangs the processor",
                None => "not readable",
            };
            format!("{}: {state}", bridge.name)
        };
        if bridges.is_empty() {
            "the kernel knows none".to_owned()
        } else {
            bridges.iter().map(word).collect::<Vec<_>>().join("\n")
        }
    }
}

#[derive(Serialize)]
pub(super) struct AroundEntry {
    what: &'static str,
    who: &'static str,
}

impl AroundEntry {
    pub(super) fn of(around: &Around) -> Self {
        Self { what: around.what, who: around.who }
    }

    fn words(all: &[Self]) -> String {
        all.iter().map(|one| format!("{}: {}", one.what, one.who)).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Serialize)]
pub(super) struct LoadReport {
    loaded: bool,
    manager: String,
    way: Option<String>,
    device: String,
    state_before: String,
    state_after: String,
    bridges_before: Vec<BridgeEntry>,
    bridges_after: Vec<BridgeEntry>,
    around: Vec<AroundEntry>,
    bitstream: FileReport,
}

impl LoadReport {
    pub(super) fn of(
        bitstream: FileReport,
        fpga: &Fpga<'_>,
        loaded: &Loaded,
        around: &[Around],
        dry_run: bool,
    ) -> Self {
        Self {
            loaded: !dry_run,
            manager: fpga.manager.id.clone(),
            way: fpga.way.as_ref().map(ToString::to_string),
            device: fpga.target.to_string(),
            state_before: loaded.before.to_string(),
            state_after: loaded.after.to_string(),
            bridges_before: BridgeEntry::all(&loaded.bridges_before),
            bridges_after: BridgeEntry::all(&loaded.bridges_after),
            around: around.iter().map(AroundEntry::of).collect(),
            bitstream,
        }
    }

    pub(super) fn listed(&self) -> String {
        let mut rows = self.bitstream.rows();
        rows.extend([
            ("board", self.device.clone()),
            ("way", self.way.clone().unwrap_or_default()),
            ("before", self.state_before.clone()),
            ("after", self.state_after.clone()),
            ("bridges", BridgeEntry::words(&self.bridges_after)),
            ("around", AroundEntry::words(&self.around)),
        ]);
        let end = if self.loaded {
            "loaded: the fabric runs"
        } else {
            "checked: nothing was written; without --dry-run it is loaded"
        };
        format!("{}\n{end}", listed(&rows))
    }
}

#[derive(Serialize)]
pub(super) struct UnloadReport {
    pub(super) manager: String,
    pub(super) state: String,
    pub(super) bridges: Vec<BridgeEntry>,
}

impl UnloadReport {
    pub(super) fn listed(&self) -> String {
        let rows = [
            ("manager", self.manager.clone()),
            ("state", self.state.clone()),
            ("bridges", BridgeEntry::words(&self.bridges)),
        ];
        format!("{}\nunloaded", listed(&rows))
    }
}

#[derive(Serialize)]
pub(super) struct StatusReport {
    pub(super) manager: String,
    pub(super) name: String,
    pub(super) state: String,
    pub(super) way: Option<String>,
    /// The regions that can take an overlay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) regions: Vec<String>,
    pub(super) device: String,
    pub(super) bridges: Vec<BridgeEntry>,
    pub(super) users: Vec<String>,
    /// The reason why the fabric's users cannot be seen.
    pub(super) unseen: Option<String>,
    pub(super) around: Vec<AroundEntry>,
}

impl StatusReport {
    pub(super) fn listed(&self) -> String {
        let users = match (&self.unseen, self.users.as_slice()) {
            (Some(unseen), _) => unseen.clone(),
            (None, []) => "none".to_owned(),
            (None, users) => users.join("\n"),
        };
        let way = if self.regions.len() > 1 {
            Some(format!("an overlay onto one of {}", self.regions.join(", ")))
        } else {
            self.way.clone()
        };
        let way = way.unwrap_or_else(|| {
            "none: a kernel of the board's vendor has one, or the boot loader loads".to_owned()
        });
        listed(&[
            ("manager", format!("{}: {}", self.manager, self.name)),
            ("device", self.device.clone()),
            ("state", self.state.clone()),
            ("way", way),
            ("bridges", BridgeEntry::words(&self.bridges)),
            ("used by", users),
            ("around a load", AroundEntry::words(&self.around)),
        ])
    }
}
