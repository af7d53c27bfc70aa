//! The shapes: which part of which object a point belongs to. Coordinates are the object's own, [`UNIT`] from the
//! centre to the edge, v downwards.

use super::angle::{ONE_LOG2, cos, sin};

/// Half of an object's extent in its own coordinates.
pub(super) const UNIT: i32 = 1024;

/// What an object looks like from its outline alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A filled circle.
    Ball,
    /// A box with a rim and a diagonal plank.
    Crate,
    /// A tall triangle with a band.
    Cone,
    /// A circle with a hole.
    Ring,
    /// Two equal bars at a right angle.
    Cross,
    /// Five points.
    Star,
    /// Head, trunk, arms and legs.
    Person,
    /// A body on two wheels with a cabin.
    Car,
}

/// Parts of an object that differ in colour or heat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Most of it.
    Body,
    /// Rim, wheels, legs.
    Dark,
    /// Band, windows, head.
    Light,
}

impl Shape {
    /// Whether it stands on the ground and so is never turned far.
    pub(super) fn upright(self) -> bool {
        matches!(self, Shape::Person | Shape::Car | Shape::Cone)
    }

    /// Whether it is thin enough to need more pixels than a filled shape to be told from the others.
    pub(super) fn delicate(self) -> bool {
        matches!(self, Shape::Ring | Shape::Cross | Shape::Star | Shape::Person | Shape::Car)
    }

    /// Distance from the centre that nothing of it exceeds, as a share of [`UNIT`].
    pub(super) fn reach_percent(self) -> i32 {
        match self {
            Shape::Crate => 132,
            Shape::Cone => 120,
            Shape::Person | Shape::Car => 110,
            Shape::Ball | Shape::Ring | Shape::Cross | Shape::Star => 104,
        }
    }

    /// The part at a point; `None` outside.
    #[inline]
    pub(super) fn part(self, u: i32, v: i32) -> Option<Part> {
        let (au, av) = (u.abs(), v.abs());
        match self {
            Shape::Ball => within(u, v, UNIT).then_some(Part::Body),
            Shape::Crate => {
                if au.max(av) > 940 {
                    None
                } else if au.max(av) > 740 || (u - v).abs() < 150 {
                    Some(Part::Dark)
                } else {
                    Some(Part::Body)
                }
            }
            Shape::Cone => {
                if !(-1000..=900).contains(&v) || au * 19 > (v + 1000) * 8 {
                    None
                } else if (-150..200).contains(&v) {
                    Some(Part::Light)
                } else {
                    Some(Part::Body)
                }
            }
            Shape::Ring => (within(u, v, UNIT) && !within(u, v, 560)).then_some(Part::Body),
            Shape::Cross => (au.min(av) <= 290 && au.max(av) <= 1000).then_some(Part::Body),
            Shape::Star => star(u, v).then_some(Part::Body),
            Shape::Person => person(u, v),
            Shape::Car => car(u, v),
        }
    }
}

fn within(u: i32, v: i32, radius: i32) -> bool {
    u * u + v * v <= radius * radius
}

/// A pentagram: inside at least four of the five half-planes whose edges are its lines.
fn star(u: i32, v: i32) -> bool {
    // The lines of a pentagram whose points are UNIT away pass the centre at UNIT * cos 72 degrees.
    const REACH: i32 = 316 << ONE_LOG2;
    if within(u, v, 380) || !within(u, v, UNIT + 20) {
        return within(u, v, 380);
    }
    // 256 steps do not divide by five: the rounded angles bend the star by less than a degree.
    let beyond = [64, 115, 166, 218, 269].map(|normal| u * cos(normal) + v * sin(normal) > REACH);
    beyond.into_iter().filter(|&out| out).count() <= 1
}

fn person(u: i32, v: i32) -> Option<Part> {
    let au = u.abs();
    if within(u, v + 760, 240) {
        Some(Part::Light)
    } else if (au <= 340 && (-520..=260).contains(&v)) || ((340..=540).contains(&au) && (-480..=200).contains(&v)) {
        Some(Part::Body)
    } else if (60..=310).contains(&au) && (260..=1000).contains(&v) {
        Some(Part::Dark)
    } else {
        None
    }
}

fn car(u: i32, v: i32) -> Option<Part> {
    let au = u.abs();
    if within(au - 560, v - 360, 240) {
        Some(Part::Dark)
    } else if au <= 1000 && (-80..=360).contains(&v) {
        Some(Part::Body)
    } else if (-500..-80).contains(&v) && au <= 460 + (v + 500) / 2 {
        if v > -420 && au > 50 && au <= 380 + (v + 500) / 2 { Some(Part::Light) } else { Some(Part::Body) }
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(shape: Shape) -> usize {
        let steps = || (-1500..1500).step_by(20);
        steps().flat_map(|v| steps().map(move |u| (u, v))).filter(|&(u, v)| shape.part(u, v).is_some()).count()
    }

    #[test]
    fn outlines_have_their_areas() {
        // Areas in units of 20x20 points: pi r^2 for the ball, the pentagram 1.12 r^2, and so on.
        let about = |shape, want: usize| assert!(area(shape).abs_diff(want) * 30 < want, "{shape:?} {}", area(shape));
        about(Shape::Ball, 8235);
        about(Shape::Ring, 5772);
        about(Shape::Crate, 8836);
        about(Shape::Cross, 4960);
        about(Shape::Star, 2943);
    }

    #[test]
    fn nothing_exceeds_its_reach() {
        use Shape::{Ball, Car, Cone, Crate, Cross, Person, Ring, Star};
        for shape in [Ball, Crate, Cone, Ring, Cross, Star, Person, Car] {
            for (k, more) in (0..256).flat_map(|k| (0..40).map(move |more| (k, more))) {
                let distance = UNIT * (shape.reach_percent() + more) / 100;
                let (u, v) = ((cos(k) * distance) >> ONE_LOG2, (sin(k) * distance) >> ONE_LOG2);
                assert_eq!(shape.part(u, v), None, "{shape:?} at {k}");
            }
        }
    }
}
