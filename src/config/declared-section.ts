import type { z } from 'zod';
import type { RoleName } from '../domain/role.ts';
import type { KeyPath } from './errors.ts';
import type { rule } from './schema.ts';

/** A section of a feature (`FeatureSection` in sections.ts). `Input`: all sections. */
export type DeclaredSection<Input = never> = {
  readonly name: string;
  /** The section of the core that follows it. */
  readonly before: string;
  readonly type: z.ZodType;
  /** Rules over several sections. */
  readonly rules?: readonly {
    readonly keeps: (input: Input) => boolean;
    readonly or: ReturnType<typeof rule>;
  }[];
  /** The role of a process without an upstream; null: the section does not decide it. */
  readonly roleIn?: (input: Input) => RoleName | null;
  /** What is wrong with files that it names. */
  readonly check?: (
    input: Input,
    readFile: (path: string) => string,
  ) => readonly { readonly at: KeyPath; readonly text: string }[];
  /** The files with secrets that it names. */
  readonly secretFiles?: (input: Input) => readonly { readonly key: KeyPath; readonly path: string }[];
};
