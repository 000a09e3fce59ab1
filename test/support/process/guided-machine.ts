import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wordsOf } from '../reference/guides.ts';
import { ownProgram, runProcess } from './command-line.ts';
import { startDaemonProcess, type DaemonProcess } from './daemon-process.ts';

/** The texts of the guide that are another text in each shop. */
export type Names = Map<string, string>;

/** A machine with a Latchkey, on which somebody types the commands of the guide. */
export class GuidedMachine {
  readonly #directory: string;
  readonly #names: Names;
  readonly typed: string[] = [];

  constructor(directory: string, names: Names) {
    mkdirSync(directory);
    this.#directory = directory;
    this.#names = names;
  }

  async start(configuration: object): Promise<DaemonProcess> {
    return await startDaemonProcess(this.#directory, { listen: { tcp: '127.0.0.1:0' }, ...configuration });
  }

  path(name: string): string {
    return join(this.#directory, name);
  }

  /** Types a command in the directory of the machine; returns what it writes. */
  async type(line: string): Promise<string> {
    this.typed.push(line);
    const [, ...words] = wordsOf(line).map((word) => this.#names.get(word) ?? word);
    const redirection = words.indexOf('>');
    const argv = redirection === -1 ? words : words.slice(0, redirection);
    const environment = { LATCHKEY_STATE_DIR: join(this.#directory, 'state') };
    const { code, out, err } = await runProcess(argv, environment, ownProgram, this.#directory);
    if (code !== 0) throw new Error(`${line}: ${err}`);
    if (redirection !== -1) writeFileSync(this.path(words[redirection + 1] ?? ''), out);
    return out;
  }

  async typeAll(lines: readonly string[]): Promise<void> {
    for (const line of lines) await this.type(line);
  }
}
