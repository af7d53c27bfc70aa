//! The world before anyone looks at it: where things stand, how large they are and where the light comes from.
//!
//! Both kinds of scene look at the same world: with the same seed and index, the heat image shows the objects of the
//! colour image, at half the scale and with a few rows more.

use super::angle::{ONE_LOG2, cos, sin};
use super::rng::Rng;
use super::shape::Shape;

/// World units to a pixel of the colour image.
pub(super) const PIXEL: i32 = 16;
/// Width of the world.
pub(super) const WIDTH: i32 = 640 * PIXEL;
/// Height of the world: the colour image sees all but 16 rows above and below.
pub(super) const HEIGHT: i32 = 512 * PIXEL;

/// A thing that has a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// Index into the colour classes.
    pub(super) class: usize,
    /// Its outline.
    pub(super) shape: Shape,
    /// Centre, in world units.
    pub(super) x: i32,
    /// Centre, in world units.
    pub(super) y: i32,
    /// Half the extent along its own u and v, in world units.
    pub(super) radius: (i32, i32),
    /// Turned by so many 256ths of a circle.
    pub(super) angle: i32,
}

impl Object {
    /// Distance from the centre that nothing of it exceeds.
    pub(super) fn reach(&self) -> i32 {
        self.radius.0.max(self.radius.1) * self.shape.reach_percent() / 100
    }
}

/// A soft spot of the ground: clutter without a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    /// Centre, in world units.
    pub(super) x: i32,
    /// Centre, in world units.
    pub(super) y: i32,
    /// Half the extent along its own axes, in world units.
    pub(super) radius: (i32, i32),
    /// Turned by so many 256ths of a circle.
    pub(super) angle: i32,
    /// How it differs from the ground, -100 to 100.
    pub(super) strength: i32,
}

/// Everything that both cameras see.
#[derive(Debug)]
pub(super) struct World {
    /// Far to near.
    pub(super) objects: Vec<Object>,
    /// On the ground, below all objects.
    pub(super) patches: Vec<Patch>,
    /// Height of the horizon in world units; `None` when the camera looks down.
    pub(super) horizon: Option<i32>,
    /// Where the light comes from, in 256ths of a circle.
    pub(super) light: i32,
}

impl World {
    /// The world of one scene.
    pub(super) fn new(seed: u64, index: u32, classes: &[(&str, Shape)]) -> World {
        let mut rng = Rng::new(seed, index, 0);
        let horizon = rng.chance(45).then(|| rng.range(HEIGHT / 8, HEIGHT / 2));
        let light = rng.range(0, 255);
        let patches = (0..rng.range(3, 9)).map(|_| patch(&mut rng)).collect();
        let mut objects = Vec::new();
        for _ in 0..rng.range(3, 14) {
            let object = object(&mut rng, classes, &objects);
            objects.push(object);
        }
        World { objects, patches, horizon, light }
    }

    /// The light as a vector of length one in the fixed point of the sine, pointing to where it comes from.
    pub(super) fn light_vector(&self) -> (i32, i32) {
        (cos(self.light), sin(self.light))
    }
}

fn patch(rng: &mut Rng) -> Patch {
    let long = rng.range(30, 160) * PIXEL;
    Patch {
        x: rng.range(0, WIDTH),
        y: rng.range(0, HEIGHT),
        radius: (long, long * rng.range(25, 60) / 100),
        angle: rng.range(0, 255),
        strength: rng.range(-100, 100),
    }
}

fn object(rng: &mut Rng, classes: &[(&str, Shape)], placed: &[Object]) -> Object {
    let class = rng.range(0, classes.len() as i32 - 1) as usize;
    let shape = classes[class].1;
    // Diameters in pixels of the colour image. COCO calls up to 32x32 small and beyond 96x96 large.
    let diameter = match rng.range(0, 99) {
        0..30 => rng.range(if shape.delicate() { 28 } else { 22 }, 44),
        30..75 => rng.range(44, 108),
        75..93 => rng.range(108, 180),
        _ => rng.range(180, 280),
    };
    let radius = diameter * PIXEL / 2;
    let squeeze = |percent: i32| radius * percent / 100;
    let radius = match shape {
        Shape::Crate => (radius, squeeze(rng.range(65, 100))),
        Shape::Cone => (squeeze(rng.range(75, 100)), radius),
        Shape::Person => (squeeze(rng.range(75, 95)), radius),
        Shape::Car => (radius, squeeze(rng.range(80, 100))),
        _ => (radius, radius),
    };
    let angle = if shape.upright() { rng.range(-9, 9) } else { rng.range(0, 255) };
    let mut object = Object { class, shape, x: 0, y: 0, radius, angle };
    // Things overlap, but a heap of them teaches nobody anything: prefer a free place, a few times.
    for _ in 0..3 {
        let over = radius.0.min(radius.1) * 2 / 5;
        object.x = rng.range(-over / 2, WIDTH + over / 2);
        object.y = rng.range(16 * PIXEL - over / 2, HEIGHT - 16 * PIXEL + over / 2);
        if placed.iter().all(|other| !crowds(&object, other)) {
            break;
        }
    }
    object
}

/// Whether the centres are nearer than 60 % of the radii together.
fn crowds(a: &Object, b: &Object) -> bool {
    let (dx, dy) = (i64::from(a.x - b.x), i64::from(a.y - b.y));
    let near = i64::from(a.radius.0.max(a.radius.1) + b.radius.0.max(b.radius.1)) * 6 / 10;
    dx * dx + dy * dy < near * near
}

/// A point seen from a turned and scaled centre: walks along a row in equal steps without multiplying.
pub(super) struct Frame {
    center: (i32, i32),
    turn: (i64, i64),
    radius: (i64, i64),
    unit: i64,
}

impl Frame {
    /// Coordinates in which the radii are `unit` long.
    pub(super) fn new(center: (i32, i32), radius: (i32, i32), angle: i32, unit: i32) -> Frame {
        Frame {
            center,
            turn: (i64::from(cos(angle)), i64::from(sin(angle))),
            radius: (i64::from(radius.0), i64::from(radius.1)),
            unit: i64::from(unit),
        }
    }

    /// u and v along a row from world point (x, y), a point every `step` world units.
    pub(super) fn row(&self, x: i32, y: i32, step: i32) -> impl Iterator<Item = (i32, i32)> + use<> {
        let (dx, dy) = (i64::from(x - self.center.0), i64::from(y - self.center.1));
        let (c, s) = self.turn;
        // In the fixed point of the sine.
        let mut u = self.unit * (dx * c + dy * s) / self.radius.0;
        let mut v = self.unit * (dy * c - dx * s) / self.radius.1;
        let du = self.unit * c * i64::from(step) / self.radius.0;
        let dv = -(self.unit * s * i64::from(step)) / self.radius.1;
        std::iter::repeat_with(move || {
            let here = ((u >> ONE_LOG2) as i32, (v >> ONE_LOG2) as i32);
            u += du;
            v += dv;
            here
        })
    }
}
