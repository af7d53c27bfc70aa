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

/// How far a zone is from the temperature at which the kernel acts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Headroom {
    pub(crate) zone: String,
    pub(crate) temp_c: f64,
    pub(crate) trip_c: f64,
    /// `passive` (clocks are cut), `hot` or `critical` (the machine is switched off).
    pub(crate) kind: String,
}

impl Headroom {
    pub(crate) fn left_c(&self) -> f64 {
        self.trip_c - self.temp_c
    }
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

    /// The zone that is nearest to one of its trip points; those of fans do not count.
    pub(crate) fn least_headroom(&self, tree: &Tree) -> Option<Headroom> {
        let of_zone = |(zone, path): &(String, String)| {
            let temp_c = tree.value::<i64>(path)? as f64 / 1e3;
            let (trip_c, kind) = lowest_trip(tree, path.strip_suffix("/temp")?)?;
            Some(Headroom { zone: zone.clone(), temp_c, trip_c, kind })
        };
        let nearest = |a: &Headroom, b: &Headroom| a.left_c().total_cmp(&b.left_c());
        self.zones.iter().filter_map(of_zone).min_by(nearest)
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

fn lowest_trip(tree: &Tree, zone: &str) -> Option<(f64, String)> {
    let kinds = (0..).map_while(|n: u32| Some((n, tree.text(&format!("{zone}/trip_point_{n}_type"))?)));
    let trips = kinds.filter(|(_, kind)| ["passive", "hot", "critical"].contains(&kind.as_str()));
    let with_temp = |(n, kind): (u32, String)| {
        // One that is switched off has no or a negative temperature.
        let millis = tree.value::<i64>(&format!("{zone}/trip_point_{n}_temp")).filter(|&millis| millis > 0)?;
        Some((millis as f64 / 1e3, kind))
    };
    trips.filter_map(with_temp).min_by(|a, b| a.0.total_cmp(&b.0))
}
