import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { DialectName } from '../../domain/dialect.ts';
import { credentialHeaders } from '../../domain/header-names.ts';
import { startDaemon } from '../daemon.ts';
import { embeddedConfiguration } from './embedded-configuration.ts';
import { LocalClient } from './local-client.ts';
import { makeLog } from '../log/log.ts';
import { systemRandom } from '../system/random.ts';
import { makeSample, type Sample } from './sample-catalogue.ts';

/** How the sandbox misbehaves on purpose; shares are from 0 to 1. */
export type SandboxOptions = {
  /** How callers of `/api` are answered. */
  dialect: DialectName;
  /** 0: any free one. */
  port: number;
  latencyMs: number;
  errorRate: number;
  lostReplies: number;
  /** Null: it stays. */
  offlineAfterMs: number | null;
};

/** Node's timers overflow beyond this many ms. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Runs an authority with a small catalogue in a temporary directory, its credentials printed, until a
 * signal; for people who integrate.
 */
export async function runSandbox(options: SandboxOptions): Promise<never> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-sandbox-'));
  const log = makeLog({ level: 'warn', format: 'pretty' });
  const configuration = embeddedConfiguration({
    state_dir: directory,
    listen: { tcp: `127.0.0.1:${options.port}`, dialect: options.dialect },
  });
  const daemon = await startDaemon(configuration, {
    log,
    prepare: (server) => {
      misbehave(server, options);
    },
  });
  let isUp = true;
  closeWithGrace({ delay: 15_000, skip: ['beforeExit'], logger: undefined }, async () => {
    if (isUp) await daemon.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  const base = daemon.addresses.tcp ?? '';
  const adminToken = readFileSync(join(directory, 'admin.token'), 'utf8').trim();
  const apiKey = readFileSync(join(directory, 'api.key'), 'utf8').trim();
  const sample = await makeSample(new LocalClient(base, { authorization: `Bearer ${adminToken}` }));
  process.stdout.write(
    describe({ base, adminToken, apiKey, directory, dialect: options.dialect, ...sample }),
  );
  if (options.offlineAfterMs !== null) {
    await sleep(options.offlineAfterMs);
    isUp = false;
    await daemon.stop();
    process.stdout.write('The sandbox is offline now. Ctrl-C ends it.\n');
  }
  // Only a signal ends it, from within; until then something must keep the process alive.
  for (;;) await sleep(longestTimerMs);
}

/** Makes every call of the specification slow, refused or unanswered as often as wanted. */
function misbehave(server: FastifyInstance, { latencyMs, errorRate, lostReplies }: SandboxOptions): void {
  const isOfSpecification = ({ routeOptions }: FastifyRequest): boolean =>
    routeOptions.url?.startsWith('/api/') === true;
  server.addHook('onRequest', async (request, reply) => {
    if (!isOfSpecification(request)) return;
    if (latencyMs > 0) await sleep(latencyMs);
    if (systemRandom.draw() < errorRate) await reply.code(503).send({ error: 'a bad day, on purpose' });
  });
  server.addHook('onSend', async (request) => {
    // The work is done; only its answer never arrives.
    if (isOfSpecification(request) && systemRandom.draw() < lostReplies) request.raw.socket.destroy();
  });
}

type Description = Sample & {
  base: string;
  adminToken: string;
  apiKey: string;
  directory: string;
  dialect: DialectName;
};

function describe(it: Description): string {
  return `A sandbox of the central API is running; Ctrl-C ends it and removes its data.

  address         ${it.base}
  API key         ${it.apiKey}
  product         ${it.productKey}
  product secret  ${it.secret}
  license key     ${it.licenseKey}
  admin token     ${it.adminToken}
  state           ${it.directory}

Try it:
  curl -H '${credentialHeaders.productSecret}: ${it.secret}' \\
    '${it.base}/api/v2/license/verify?license_key=${it.licenseKey}'

Put an agent in front of it:
  upstream: { base_url: '${it.base}', api_key: '${it.apiKey}', dialect: ${it.dialect} }
  products: [{ key: '${it.productKey}', secret: '${it.secret}' }]
`;
}
