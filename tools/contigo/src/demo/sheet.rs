//! The contact sheet: a PNG of the images, each with the digit that the network read.

use super::Failure;
use contigo_gemm8::demo::{INK, PIXELS, SIDE};
use embedded_graphics::mono_font::ascii::{FONT_7X13, FONT_7X13_BOLD, FONT_9X15, FONT_10X20};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{PrimitiveStyle, Rectangle};
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};
use std::convert::Infallible;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// With more images, each would be too small to see.
pub(crate) const MAX_IMAGES: usize = 200;
const COLUMNS: usize = 20;
/// Dots on the sheet for each pixel of an image.
const ZOOM: u32 = 6;
const IMAGE: u32 = SIDE * ZOOM;
/// One image, the answer below it, and the gap.
const CELL: Size = Size::new(IMAGE + GAP, IMAGE + 32);
/// The gap between two images.
const GAP: u32 = 14;
const MARGIN: u32 = 24;
/// Room for the title and the line below it.
const HEADER: u32 = 60;
/// The title fits into this width.
const MIN_WIDTH: u32 = 640;

const PAPER: Rgb888 = Rgb888::WHITE;
const TEXT: Rgb888 = Rgb888::new(0x22, 0x26, 0x2B);
const FAINT: Rgb888 = Rgb888::new(0x70, 0x76, 0x7C);
const LINE: Rgb888 = Rgb888::new(0xC8, 0xCD, 0xD2);
const WRONG: Rgb888 = Rgb888::new(0xC6, 0x1A, 0x1A);
const WRONG_PAPER: Rgb888 = Rgb888::new(0xFC, 0xE6, 0xE4);

/// One image, the digit that it shows, and the digit that the network read.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) pixels: [i8; PIXELS],
    pub(crate) label: u8,
    pub(crate) answer: u8,
}

/// Draws the first [`MAX_IMAGES`] of `pictures` and writes them to `path`.
pub(crate) fn write(path: &Path, title: &str, pictures: &[Picture]) -> Result<(), Failure> {
    let Canvas { size, dots } = draw(title, pictures);
    let file = File::create(path).map_err(|error| Failure::Write {
        path: path.to_owned(),
        error,
        option: "--png",
    })?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), size.width, size.height);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&dots)?;
        writer.finish()
    });
    written.map_err(|error| match error {
        png::EncodingError::IoError(error) => {
            Failure::Write { path: path.to_owned(), error, option: "--png" }
        }
        other => Failure::Encode(other.to_string()),
    })
}

fn draw(title: &str, pictures: &[Picture]) -> Canvas {
    let shown = pictures.get(..MAX_IMAGES).unwrap_or(pictures);
    let columns = u32::try_from(shown.len().min(COLUMNS)).unwrap_or(0);
    let rows = u32::try_from(shown.len().div_ceil(COLUMNS)).unwrap_or(0);
    let width = (2 * MARGIN + columns * CELL.width - GAP).max(MIN_WIDTH);
    let mut canvas =
        Canvas::new(Size::new(width, MARGIN + HEADER + rows * CELL.height + MARGIN / 2));

    let corner = Point::zero() + Size::new_equal(MARGIN);
    canvas.text(title, corner, &FONT_10X20, TEXT, Alignment::Left);
    let which = if shown.len() < pictures.len() {
        format!("The first {} are shown. ", shown.len())
    } else {
        String::new()
    };
    let legend = format!(
        "{which}Below each image: what the network read. Red: wrong, as read and as it is."
    );
    canvas.text(&legend, corner + Size::new(0, 26), &FONT_7X13, FAINT, Alignment::Left);

    let places = (0..rows).flat_map(|row| {
        (0..columns).map(move |column| Size::new(column * CELL.width, row * CELL.height))
    });
    for (picture, place) in shown.iter().zip(places) {
        canvas.picture(picture, corner + Size::new(0, HEADER) + place);
    }
    canvas
}

struct Canvas {
    size: Size,
    dots: Vec<u8>,
}

impl Canvas {
    fn new(size: Size) -> Self {
        Self {
            size,
            dots: [PAPER.r(), PAPER.g(), PAPER.b()]
                .repeat(size.width as usize * size.height as usize),
        }
    }

    fn fill(&mut self, corner: Point, size: Size, colour: Rgb888) {
        let Ok(()) =
            Rectangle::new(corner, size).into_styled(PrimitiveStyle::with_fill(colour)).draw(self);
    }

    fn text(
        &mut self,
        text: &str,
        at: Point,
        font: &MonoFont<'_>,
        colour: Rgb888,
        alignment: Alignment,
    ) {
        let style = TextStyleBuilder::new().alignment(alignment).baseline(Baseline::Top).build();
        let Ok(_) =
            Text::with_text_style(text, at, MonoTextStyle::new(font, colour), style).draw(self);
    }

    fn picture(&mut self, picture: &Picture, corner: Point) {
        let wrong = picture.answer != picture.label;
        let (border, colour, paper) =
            if wrong { (3, WRONG, WRONG_PAPER) } else { (1, LINE, PAPER) };
        self.fill(corner - Size::new_equal(border), Size::new_equal(IMAGE + 2 * border), colour);
        for (pixel, place) in picture
            .pixels
            .iter()
            .zip((0..SIDE).flat_map(|y| (0..SIDE).map(move |x| Size::new(x, y))))
        {
            self.fill(corner + place * ZOOM, Size::new_equal(ZOOM), shade(*pixel, paper));
        }
        let below = corner + Size::new(IMAGE / 2, IMAGE + 6);
        if wrong {
            self.text(
                &format!("{}, is {}", picture.answer, picture.label),
                below + Size::new(0, 1),
                &FONT_7X13_BOLD,
                WRONG,
                Alignment::Center,
            );
        } else {
            self.text(&picture.answer.to_string(), below, &FONT_9X15, TEXT, Alignment::Center);
        }
    }
}

/// Ink on `paper`: 0 is none, 16 is all.
fn shade(pixel: i8, paper: Rgb888) -> Rgb888 {
    let ink = u16::from(u8::try_from(pixel).unwrap_or(0).min(INK));
    let mix = |paper: u8, text: u8| {
        let sum = u16::from(paper) * (u16::from(INK) - ink) + u16::from(text) * ink;
        u8::try_from(sum / u16::from(INK)).unwrap_or(u8::MAX)
    };
    Rgb888::new(mix(paper.r(), TEXT.r()), mix(paper.g(), TEXT.g()), mix(paper.b(), TEXT.b()))
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        self.size
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(
        &mut self,
        pixels: I,
    ) -> Result<(), Infallible> {
        for Pixel(at, colour) in pixels {
            // Drops pixels outside the canvas.
            let (Ok(x), Ok(y)) = (u32::try_from(at.x), u32::try_from(at.y)) else { continue };
            if x < self.size.width {
                let first = 3 * (y as usize * self.size.width as usize + x as usize);
                if let Some(dot) = self.dots.get_mut(first..first + 3) {
                    dot.copy_from_slice(&[colour.r(), colour.g(), colour.b()]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(answer: u8) -> Picture {
        Picture { pixels: [INK.cast_signed(); PIXELS], label: 3, answer }
    }

    fn has(canvas: &Canvas, colour: Rgb888) -> bool {
        canvas.dots.chunks_exact(3).any(|dot| dot == [colour.r(), colour.g(), colour.b()])
    }

    #[test]
    fn only_wrong_answers_are_red() {
        assert!(!has(&draw("all right", &[picture(3)]), WRONG));
        assert!(has(&draw("one wrong", &[picture(3), picture(8)]), WRONG));
    }

    #[test]
    fn it_grows_with_the_images_up_to_a_limit() {
        let pictures = vec![picture(3); MAX_IMAGES + 50];
        let full = draw("many", pictures.get(..MAX_IMAGES).unwrap_or_default()).size;
        assert_eq!(draw("too many", &pictures).size, full);
        assert!(draw("none", &[]).size.height < full.height);
    }

    #[test]
    fn ink_covers_paper() {
        assert_eq!((shade(0, PAPER), shade(16, PAPER), shade(127, PAPER)), (PAPER, TEXT, TEXT));
        assert_eq!(shade(-1, PAPER), PAPER);
    }
}
