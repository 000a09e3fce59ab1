import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { isBrowserInstalled } from '../../support/process/browser.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const missing = isBrowserInstalled ? '' : ' (skipped: Chromium is not installed at /usr/bin/chromium)';
const root = join(import.meta.dirname, '../../..');
const maxBytes = 170_000;

/** The width and the height of a PNG picture, and its size in bytes. */
function measure(path: string): { width: number; height: number; bytes: number } {
  const picture = readFileSync(path);
  expect(picture.subarray(1, 4).toString()).toBe('PNG');
  return { width: picture.readUInt32BE(16), height: picture.readUInt32BE(20), bytes: picture.length };
}

describe('the pictures in README.md', () => {
  test.skipIf(!isBrowserInstalled)(
    `the script makes a light and a dark picture of the console and one of the terminal from the demo data${missing}`,
    async () => {
      await using directory = temporaryDirectory();
      const script = join(root, 'src/packaging/screenshots.ts');
      execFileSync(process.execPath, [script, '--output', directory.path], { stdio: 'pipe' });
      const [light, dark] = ['light', 'dark'].map((scheme) => {
        const path = join(directory.path, `console-${scheme}.png`);
        const { bytes, ...size } = measure(path);
        expect(size).toEqual({ width: 1200, height: 900 });
        // A page without its plots has less than half of this.
        expect(bytes).toBeGreaterThan(80_000);
        expect(bytes).toBeLessThanOrEqual(maxBytes);
        return readFileSync(path);
      });
      expect(light?.equals(dark ?? Buffer.alloc(0))).toBe(false);
      const terminal = measure(join(directory.path, 'terminal.png'));
      // Without the output of its two commands it would be lower.
      expect(terminal.height).toBeGreaterThan(400);
      expect(terminal.bytes).toBeLessThanOrEqual(maxBytes);
    },
  );

  test('README.md shows the pictures, and none is large', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    for (const name of ['console-light.png', 'console-dark.png', 'terminal.png']) {
      expect(readme).toContain(`examples/${name}`);
      expect(measure(join(root, 'examples', name)).bytes).toBeLessThanOrEqual(maxBytes);
    }
  });
});
