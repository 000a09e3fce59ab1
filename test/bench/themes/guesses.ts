import type { Bench } from '../bench.ts';
import { exceed } from '../compare.ts';
import { Connection } from '../load/connection.ts';
import type { Measured } from '../load/load.ts';
import { licenseKeyOf, oneKey, verify } from '../sample.ts';
import { startBare, startLatchkey, type Latchkey } from '../server.ts';
import { copyOfStore } from '../stores.ts';
import type { Theme } from '../theme.ts';

const strangers = 64;

export const guessesTheme: Theme = {
  name: 'guesses',
  about: 'the median verify while strangers guess license keys at the page for buyers',
  async *measure(bench) {
    const state = await copyOfStore(bench, { role: 'authority', licenses: bench.count(10_000) });
    const page = { address: '127.0.0.1:0', proxies: ['127.0.0.1'], buyers: true };
    const listen = { tcp: '127.0.0.1:0', socket: bench.socketPath(), public: page };
    const authority = await startLatchkey(bench, { state, settings: { listen } });
    const { public: url } = JSON.parse(authority.line) as { public: string };
    // Another server that gets the same requests uses the processors as well, but cannot block a verify.
    const bare = await startBare(bench);
    const { besideGuesses, besideBare } = await bench.alternate({
      besideGuesses: () => verifyBeside(bench, authority, Number(new URL(url).port)),
      besideBare: () => verifyBeside(bench, authority, bare.tcp.port),
    });
    const what = `${strangers} connections that guess, authority: added to the median verify`;
    const to = { bare: besideBare };
    yield exceed(what, { 'beside guesses': besideGuesses }, to, { by: 'p50', goal: { atMost: 3 } });
  },
};

/** Verifies at a low rate while others guess, so that a pause shows as latency. */
async function verifyBeside(bench: Bench, authority: Latchkey, guessed: number): Promise<Measured> {
  const guessers = await Promise.all(
    Array.from({ length: strangers }, () => Connection.open({ port: guessed })),
  );
  for (const each of guessers) {
    each.onResponse = () => each.send(nextGuess());
    each.send(nextGuess());
  }
  try {
    const job = { target: authority.tcp, request: verify, keys: oneKey, connections: 8, rate: 1000 } as const;
    return await bench.load(authority, job);
  } finally {
    for (const each of guessers) each.close();
  }
}

let guesses = 0;

/** A guess from a network of its own, so that no limit refuses it. */
function nextGuess(): string {
  guesses += 1;
  const network = `10.${(guesses >> 16) & 255}.${(guesses >> 8) & 255}.${guesses & 255}`;
  const body = `license_key=${licenseKeyOf(1e9 + guesses)}&email=buyer%40example.com`;
  return `POST /license HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: ${network}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}
