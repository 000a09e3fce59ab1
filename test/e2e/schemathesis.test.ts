import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { missingTool, pythonPackages } from '../support/reference/api-tools.ts';
import { startDialectHarness } from '../support/harness/dialect-harness.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** Configuration of Schemathesis, and the accepted findings with reasons. */
const folder = fileURLToPath(new URL('schemathesis', import.meta.url));
const program = `${pythonPackages}/bin/schemathesis`;
const missing = missingTool(program);
/**
 * How many random requests Schemathesis makes for each operation, in addition to those derived from
 * the schema.
 */
const examples = process.env['SCHEMATHESIS_EXAMPLES'] ?? '5';

describe.skipIf(missing !== '')(`Schemathesis${missing}`, () => {
  test.each(['authority', 'agent'] as const)(
    'Schemathesis finds that an %s behaves as its OpenAPI description says',
    async (role) => {
      await using home = temporaryDirectory();
      // Schemathesis guesses credentials, and expects 401 each time.
      await using harness = await startDialectHarness(
        role,
        'tcp',
        {},
        { limits: { failed_rate: 1_000_000 } },
      );
      const options = [
        // With two workers, both read the source of a lambda, at which Python 3.11 sometimes fails
        // (CPython #106905).
        '--workers',
        '1',
        '--phases',
        'examples,coverage,fuzzing,stateful',
        '--max-examples',
        examples,
      ];
      const address = `${harness.addresses.tcp}/openapi.json`;
      const environment = {
        PATH: process.env['PATH'],
        HOME: home.path,
        PYTHONPATH: `${pythonPackages}:${folder}`,
        PYTHONDONTWRITEBYTECODE: '1',
        LATCHKEY_TOKEN: harness.credentials.token,
      };
      const { found, said } = await promisify(execFile)(
        program,
        ['--no-color', '--config-file', `${folder}/schemathesis.toml`, 'run', address, ...options],
        { cwd: home.path, env: environment, maxBuffer: 64 * 1024 ** 2 },
      ).then(
        ({ stdout }) => ({ found: '', said: stdout }),
        ({ stdout, stderr }: { stdout: string; stderr: string }) => ({
          found: stdout + stderr,
          said: stdout,
        }),
      );
      expect(found).toBe('');
      expect(said).toMatch(/Tested: [1-9]/);
    },
    900_000,
  );
});
