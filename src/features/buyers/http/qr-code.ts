import { renderSVG } from 'uqr';
import { Html } from './html.ts';

/** The most that a QR code can hold, in bytes (ISO/IEC 18004, version 40-L). */
const maxBytes = 2953;

/** A QR code as an SVG image; null if the text is too long. */
export function qrCode(text: string): Html | null {
  if (Buffer.byteLength(text) > maxBytes) return null;
  // The best of eight masks takes four times as long, and a signed text looks random with each.
  return new Html(renderSVG(text, { border: 4, pixelSize: 4, maskPattern: 0 }));
}
