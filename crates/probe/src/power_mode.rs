//! Power modes of a Jetson (`nvpmodel`), compared by name.
//!
//! A mode's number says nothing: 0 is MAXN on an AGX Orin and 15 W on an Orin Nano, where MAXN_SUPER is 2.

use std::path::Path;

use crate::tree::Tree;

/// A power mode of `nvpmodel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerMode {
    /// What `nvpmodel -m` takes.
    pub id: u32,
    /// `MAXN`, `15W`, `MODE_30W_ALL`.
    pub name: String,
}

/// The power modes of a board.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PowerModes {
    /// The one in force.
    pub current: Option<u32>,
    /// The board's table, in its order.
    pub all: Vec<PowerMode>,
}

/// How much a mode permits, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Power {
    Watts(u32),
    Maxn,
    MaxnSuper,
}

impl PowerModes {
    /// Those of a machine with this root folder.
    pub fn at(root: &Path) -> PowerModes {
        PowerModes::read(&Tree::new(root.to_owned()))
    }

    pub(crate) fn read(tree: &Tree) -> PowerModes {
        let current = tree.text("var/lib/nvpmodel/status").and_then(|text| number_after(&text, "pmode:"));
        let conf = tree.text("etc/nvpmodel.conf").unwrap_or_default();
        PowerModes { current, all: conf.lines().filter_map(power_mode).collect() }
    }

    /// Name of the mode in force, or its number where the names are not there.
    pub fn name(&self) -> Option<String> {
        self.current.map(|id| self.name_of(id))
    }

    /// Name of a mode, or its number where the table does not have it.
    pub fn name_of(&self, id: u32) -> String {
        let named = self.all.iter().find(|mode| mode.id == id);
        named.map_or_else(|| format!("mode {id}"), |mode| mode.name.clone())
    }

    /// The mode that permits most, if it permits more than the one in force. The error is why that cannot be decided.
    pub fn higher(&self) -> Result<Option<&PowerMode>, String> {
        let id = self.current.ok_or("the power mode cannot be read")?;
        let Some(current) = self.all.iter().find(|mode| mode.id == id) else {
            return Err(format!("mode {id} is not in /etc/nvpmodel.conf"));
        };
        let now = power(&current.name).ok_or_else(|| format!("the name {} does not say its power", current.name))?;
        let best = self.all.iter().filter_map(|mode| power(&mode.name)).max().unwrap_or(now);
        if best <= now {
            return Ok(None);
        }
        let at_best: Vec<&PowerMode> = self.all.iter().filter(|mode| power(&mode.name) == Some(best)).collect();
        match at_best[..] {
            [only] => Ok(Some(only)),
            // They trade cores for clocks: none of them is the higher one.
            _ => {
                let names: Vec<&str> = at_best.iter().map(|mode| mode.name.as_str()).collect();
                Err(format!("several modes have the highest power: {}", names.join(", ")))
            }
        }
    }
}

/// By its name: MAXN has no limit, MAXN_SUPER higher clocks still; any other mode has its watts in its name.
fn power(name: &str) -> Option<Power> {
    let watts = |word: &str| word.strip_suffix('W')?.parse().ok().map(Power::Watts);
    match name {
        "MAXN_SUPER" => Some(Power::MaxnSuper),
        "MAXN" => Some(Power::Maxn),
        other => other.split('_').find_map(watts),
    }
}

/// `< POWER_MODEL ID=0 NAME=MAXN >`
fn power_mode(line: &str) -> Option<PowerMode> {
    let line = line.trim().strip_prefix('<')?.trim_start().strip_prefix("POWER_MODEL")?;
    let (_, name) = line.split_once("NAME=")?;
    Some(PowerMode { id: number_after(line, "ID=")?, name: name.split(['>', ' ']).next()?.to_owned() })
}

fn number_after(text: &str, key: &str) -> Option<u32> {
    let (_, rest) = text.split_once(key)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(names: &[&str], current: u32) -> PowerModes {
        let mode = |(id, name): (usize, &&str)| PowerMode { id: id as u32, name: (*name).to_owned() };
        PowerModes { current: Some(current), all: names.iter().enumerate().map(mode).collect() }
    }

    #[test]
    fn the_highest_mode_of_each_board_is_found_by_name() {
        let nano_super = ["15W", "25W", "MAXN_SUPER", "7W"];
        let nano = ["15W", "7W"];
        let agx = ["MAXN", "MODE_15W", "MODE_30W", "MODE_50W"];
        let nx = ["MAXN", "10W", "15W", "25W"];
        let nx_super = ["MAXN_SUPER", "10W", "15W", "25W", "40W"];
        let thor = ["MAXN", "120W", "90W", "70W"];
        for (names, highest) in [(&nano_super[..], 2), (&nano, 0), (&agx, 0), (&nx, 0), (&nx_super, 0), (&thor, 0)] {
            for current in 0..names.len() as u32 {
                let modes = board(names, current);
                let higher = modes.higher().unwrap().map(|mode| mode.id);
                assert_eq!(higher, (current != highest).then_some(highest), "{names:?} in {current}");
            }
        }
    }

    #[test]
    fn what_cannot_be_compared_is_not_chosen() {
        // Modes of the same power trade cores for clocks.
        let xavier_nx = ["MODE_15W_2CORE", "MODE_15W_6CORE", "MODE_10W_2CORE", "MODE_20W_2CORE", "MODE_20W_6CORE"];
        let reason = board(&xavier_nx, 0).higher().unwrap_err();
        assert_eq!(reason, "several modes have the highest power: MODE_20W_2CORE, MODE_20W_6CORE");
        assert_eq!(board(&xavier_nx, 4).higher(), Ok(None), "it is one of the highest");
        let own = ["MAXN", "QUIET"];
        assert_eq!(board(&own, 1).higher().unwrap_err(), "the name QUIET does not say its power");
        assert_eq!(board(&own, 0).higher(), Ok(None));
        assert_eq!(board(&own, 7).higher().unwrap_err(), "mode 7 is not in /etc/nvpmodel.conf");
        assert!(PowerModes::default().higher().is_err());
    }
}
