import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { openApp } from '../support/app/http-app.ts';
import { openReceiver, openSender, type Received } from '../features/webhooks/support/webhooks.ts';
import { eventually } from '../support/harness/agent-harness.ts';
import { blocksOf, readExample } from '../support/reference/guides.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/* The libraries of Standard Webhooks that receivers use verify what Latchkey sends. */

const run = promisify(execFile);

type Message = Pick<Received, 'headers' | 'body'>;
/** A message, the secret of the receiver, and whether the library must accept it. */
type Case = { name: string; message: Message; secret: string; isAccepted: boolean };

/** A message that was sent to a receiver, and messages that were forged from it. */
async function cases(): Promise<Case[]> {
  await using opened = await openApp();
  await using receiver = await openReceiver();
  const { reader, writer } = opened.app;
  const added = await writer.write('addWebhook', { url: receiver.url, types: null });
  if (!added.ok) throw new Error(added.problem.detail);
  const { secret } = added.value;
  const sender = await openSender({ reader, writer });
  await sender.test(added.value);
  const old = await openSender({ reader, writer, clock: anHourAgo });
  await old.test(added.value);
  const [sent, sentLongAgo] = receiver.received;
  if (sent === undefined || sentLongAgo === undefined) throw new Error('nothing was sent');
  const other = `whsec_${randomBytes(32).toString('base64')}`;
  const changed = { ...sent, body: sent.body.replace('webhook.test', 'webhook.tesu') };
  return [
    { name: 'as it was sent', message: sent, secret, isAccepted: true },
    { name: 'a changed byte', message: changed, secret, isAccepted: false },
    { name: 'an old timestamp', message: sentLongAgo, secret, isAccepted: false },
    { name: 'another secret', message: sent, secret: other, isAccepted: false },
  ];
}

const anHourAgo = {
  now: () => Date.now() - 3_600_000,
  monotonic: () => Math.round(performance.now()),
  sleep: async () => await new Promise<void>(() => undefined),
};

function expectedOf(all: readonly Case[]): unknown[] {
  return all.map(({ name, isAccepted }) => [name, isAccepted]);
}

const python = `
import json, sys
from standardwebhooks import Webhook
results = []
for case in json.load(sys.stdin):
    try:
        Webhook(case["secret"]).verify(case["message"]["body"], case["message"]["headers"])
        results.append([case["name"], True])
    except Exception:
        results.append([case["name"], False])
print(json.dumps(results))
`;

const module = 'github.com/standard-webhooks/standard-webhooks/libraries v0.0.1';
const goModule = `module receiver\n\ngo 1.22\n\nrequire ${module}\n`;
const go = `package main

import (
	"encoding/json"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	var cases []struct {
		Name, Secret string
		Message      struct {
			Body    string
			Headers map[string]string
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	results := [][]any{}
	for _, each := range cases {
		webhook, err := standardwebhooks.NewWebhook(each.Secret)
		if err != nil {
			panic(err)
		}
		headers := http.Header{}
		for name, value := range each.Message.Headers {
			headers.Set(name, value)
		}
		results = append(results, []any{each.Name, webhook.Verify([]byte(each.Message.Body), headers) == nil})
	}
	json.NewEncoder(os.Stdout).Encode(results)
}
`;

test('the library for Node accepts what is sent, and refuses a changed byte, an old timestamp and another secret', async () => {
  const all = await cases();
  const results = all.map(({ name, message, secret }) => {
    try {
      new Webhook(secret).verify(message.body, message.headers);
      return [name, true];
    } catch {
      return [name, false];
    }
  });
  expect(results).toEqual(expectedOf(all));
});

test('the library for Python accepts what is sent, and refuses a changed byte, an old timestamp and another secret', async ({
  skip,
}) => {
  const env = { ...process.env, PYTHONPATH: join(import.meta.dirname, '../../node_modules/.python') };
  const isInstalled = await run('python3', ['-c', 'import standardwebhooks'], { env }).catch(() => null);
  if (isInstalled === null) skip('standardwebhooks for Python is not installed here');
  const all = await cases();
  const running = run('python3', ['-c', python], { env });
  running.child.stdin?.end(JSON.stringify(all));
  expect(JSON.parse((await running).stdout)).toEqual(expectedOf(all));
});

test('the library for Go accepts what is sent, and refuses a changed byte, an old timestamp and another secret', async ({
  skip,
}) => {
  await using directory = temporaryDirectory();
  writeFileSync(join(directory.path, 'go.mod'), goModule);
  writeFileSync(join(directory.path, 'main.go'), go);
  // Only a module that was downloaded before.
  const env = { ...process.env, GOFLAGS: '-mod=mod', GOPROXY: 'off', GONOSUMDB: '*', GOTOOLCHAIN: 'local' };
  const options = { cwd: directory.path, env };
  const built = await run('go', ['build', '-o', 'receiver', '.'], options).catch(() => null);
  if (built === null) skip('Go, or standard-webhooks for Go, is not installed here');
  const all = await cases();
  const running = run(join(directory.path, 'receiver'), [], options);
  running.child.stdin?.end(JSON.stringify(all));
  expect(JSON.parse((await running).stdout)).toEqual(expectedOf(all));
});

test('the receiver of the guide accepts what is sent, and refuses what another secret has signed', async () => {
  const [program = ''] = blocksOf(readExample('guides/webhooks.md'), 'js');
  const all = await cases();
  const port = await freePort();
  const environment = { ...process.env, LATCHKEY_WEBHOOK_SECRET: all[0]?.secret, PORT: String(port) };
  const running = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: join(import.meta.dirname, '../..'),
    env: environment,
  });
  try {
    const statuses: unknown[] = [];
    for (const { name, message, isAccepted } of all.slice(0, 3)) {
      const send = async () =>
        await fetch(`http://127.0.0.1:${port}/`, {
          method: 'POST',
          headers: headersOf(message),
          body: message.body,
        });
      const { status } = await retried(send);
      statuses.push([name, status === 204]);
      expect(status).toBe(isAccepted ? 204 : 401);
    }
    expect(statuses).toEqual(expectedOf(all.slice(0, 3)));
  } finally {
    running.kill();
  }
});

/** `fetch` makes the headers of the connection. */
function headersOf({ headers }: Message): Record<string, string> {
  const ours = Object.entries(headers).filter(
    ([name]) => name.startsWith('webhook-') || name === 'content-type',
  );
  return Object.fromEntries(ours);
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Repeats a request until the program listens. */
async function retried(send: () => Promise<Response>): Promise<Response> {
  let response: Response | null = null;
  await eventually(async () => {
    response = await send().catch(() => null);
    return response !== null;
  });
  if (response === null) throw new Error('there was no answer');
  return response;
}
