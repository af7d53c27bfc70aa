//! Temperatures, from the thermal zones.

use crate::tree::Tree;

const ZONES: &str = "sys/class/thermal";

/// Zones that answered when they were looked for. Some never do (a switched-off radio, an accelerator without power):
/// those are kept by name only.
#[derive(Debug)]
pub(crate) struct Zones {
    zones: Vec<(String, String)>,
    silent: Vec<String>,
}

impl Zones {
    pub(crate) fn find(tree: &Tree) -> Zones {
        let mut found = Zones { zones: Vec::new(), silent: Vec::new() };
        for zone in tree.numbered(ZONES, "thermal_zone") {
            let mut name = tree.text(&format!("{ZONES}/{zone}/type")).unwrap_or_else(|| zone.clone());
            if found.zones.iter().any(|(other, _)| *other == name) {
                // Two zones of one type are told apart by their number.
                name = format!("{name} ({})", zone.trim_start_matches("thermal_zone"));
            }
            let path = format!("{ZONES}/{zone}/temp");
            match tree.value::<i64>(&path) {
                Some(_) => found.zones.push((name, path)),
                None => found.silent.push(format!("temperature {name}")),
            }
        }
        found
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.zones.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn silent(&self) -> &[String] {
        &self.silent
    }

    /// Degrees Celsius by zone.
    pub(crate) fn read(&self, tree: &Tree, failed: &mut Vec<String>) -> Vec<(String, f64)> {
        let mut temps = Vec::with_capacity(self.zones.len());
        for (name, path) in &self.zones {
            match tree.value::<i64>(path) {
                Some(millis) => temps.push((name.clone(), millis as f64 / 1e3)),
                None => failed.push(format!("temperature {name}")),
            }
        }
        temps
    }
}
