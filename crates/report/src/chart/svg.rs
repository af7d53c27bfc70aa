//! A drawing under construction. Text is escaped here and nowhere else.

use std::fmt::Write as _;

/// An `<svg>` that fills the width it is given.
pub(crate) struct Svg {
    body: String,
    width: f64,
    height: f64,
    stretch: bool,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        Svg { body: String::new(), width, height, stretch: false }
    }

    /// A drawing without text that may be pulled to any width.
    pub(crate) fn elastic(width: f64, height: f64) -> Svg {
        Svg { stretch: true, ..Svg::new(width, height) }
    }

    /// A rectangle, with what it stands for where it stands for something.
    pub(crate) fn rect(&mut self, class: &str, [x, y, w, h]: [f64; 4], title: &str) {
        let (w, h) = (w.max(0.0), h.max(0.0));
        let shape = format!("<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"");
        self.close(&shape, "rect", title);
    }

    pub(crate) fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4], title: &str) {
        let shape = format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"");
        self.close(&shape, "line", title);
    }

    /// A path through points; closed where it is an area.
    pub(crate) fn path(&mut self, class: &str, points: &[[f64; 2]], closed: bool, title: &str) {
        if points.is_empty() {
            return;
        }
        let mut d = String::new();
        for (i, [x, y]) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        let end = if closed { "Z" } else { "" };
        self.close(&format!("<path class=\"{class}\" d=\"{d}{end}\""), "path", title);
    }

    /// Text; `anchor` is `start`, `middle` or `end`.
    pub(crate) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: &str, text: &str) {
        let open = format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">");
        let _ = write!(self.body, "{open}{}</text>", escape(text));
    }

    /// Text from left to right with an addition that a narrow screen can do without.
    pub(crate) fn text_with_note(&mut self, class: &str, [x, y]: [f64; 2], text: &str, note: &str) {
        let open = format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}", escape(text));
        let _ = write!(self.body, "{open}<tspan class=\"odd\">{}</tspan></text>", escape(note));
    }

    /// The drawing; `label` is what a reader who does not see it is told.
    pub(crate) fn finish(self, label: &str) -> String {
        let Svg { body, width, height, stretch } = self;
        let fit = if stretch { " preserveAspectRatio=\"none\"" } else { "" };
        let open =
            format!("<svg viewBox=\"0 0 {width:.0} {height:.0}\"{fit} role=\"img\" aria-label=\"{}\">", escape(label));
        format!("{open}{body}</svg>")
    }

    fn close(&mut self, shape: &str, name: &str, title: &str) {
        let _ = match title {
            "" => write!(self.body, "{shape}/>"),
            title => write!(self.body, "{shape}><title>{}</title></{name}>", escape(title)),
        };
    }
}

fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", [0.0, 0.0], "start", "</text><script>");
        assert!(!svg.finish("\"><script>").contains("<script>"));
    }
}
