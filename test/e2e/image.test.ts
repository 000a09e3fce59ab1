import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { missingForCleanRoot } from '../support/process/clean-root.ts';
import { makeImage } from '../support/process/image.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const examples = join(import.meta.dirname, '../../examples');

test.skipIf(missingForCleanRoot !== null)(
  `the image runs as user 1000, can write only to its state, is healthy, and drains (missing here: ${missingForCleanRoot ?? 'nothing'})`,
  async () => {
    await using folder = temporaryDirectory();
    // Any free port, because other tests run at the same time.
    const configuration = join(folder.path, 'config.yaml');
    writeFileSync(configuration, readFileSync(join(examples, 'agent.yaml'), 'utf8').replace(':8787', ':0'));
    await using image = await makeImage();
    image.addPrivately(configuration, 'etc/latchkey/config.yaml');
    image.addPrivately(join(examples, 'rgsf.secret'), 'etc/latchkey/rgsf.secret');
    await using container = await image.start();
    const status = readFileSync(`/proc/${container.pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\s+1000\s+1000\s+1000\s+1000$/m);
    expect(image.check(container)).toMatchObject({ status: 0, stdout: 'ok\n' });
    container.signal('SIGTERM');
    expect([await container.ended, container.complaints]).toEqual([0, '']);
    expect(container.lines.filter(({ msg }) => msg === 'the configuration is not safe')).toEqual([]);
  },
  590_000,
);
