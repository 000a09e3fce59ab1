import { execFileSync } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { buildOnce } from '../build-once.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The file that starts the built program; undefined in a project that starts it from source. */
    builtProgram: string | undefined;
  }
}

const root = join(import.meta.dirname, '../../..');

/** The file that starts the program, from the folder of `buildProgramOnce`. */
export const programFile = 'dist/cli/main.js';

/** Before the files of a project that starts the program as a process. */
export function setup(project: TestProject): void {
  project.provide('builtProgram', join(buildProgramOnce(), programFile));
}

/**
 * Builds the program once for the same sources; returns its folder. A daemon from source takes 2.1 s of processor time
 * to start and stop, and a built daemon 1.2 s; the build takes 5 s.
 */
export function buildProgramOnce(): string {
  return buildOnce('program', sourcesDigest(), (directory) => {
    mkdirSync(directory);
    copyFileSync(join(root, 'package.json'), join(directory, 'package.json'));
    execFileSync(process.execPath, [join(root, 'src/packaging/program.ts'), join(directory, 'dist')]);
  });
}

/** The hash of everything that goes into a build: the files that `examples/Dockerfile` copies, and Node. */
export function sourcesDigest(): string {
  const digest = createHash('sha256').update(`${process.version} ${process.arch}`);
  for (const path of ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json']) add(digest, path);
  const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true });
  const files = sources.filter((each) => each.isFile()).map((each) => join(each.parentPath, each.name));
  for (const path of files.toSorted()) add(digest, path.slice(root.length + 1));
  return digest.digest('hex').slice(0, 16);
}

function add(digest: Hash, path: string): void {
  const content = readFileSync(join(root, path));
  digest.update(`\n${path} ${content.length}\n`).update(content);
}
