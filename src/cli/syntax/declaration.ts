/** A word or line, and what it means. */
export interface Term {
  readonly term: string;
  readonly meaning: string;
}

/** What a value names, so that a shell can complete it: files, folders, commands, or things of the running daemon. */
export type Named = 'file' | 'folder' | 'command' | ThingName;

/** Things of the running daemon that have an id. */
export type ThingName =
  'account' | 'act' | 'collection' | 'coupon' | 'operation' | 'product' | 'purchase' | 'token';

/** An option or an operand; without `type` it is a text, or one of its choices. */
export interface Value {
  readonly describe: string;
  readonly type?: 'number' | 'boolean';
  readonly choices?: readonly string[];
  /** What a shell completes, where other values are taken too. */
  readonly suggestions?: readonly Term[];
  readonly default?: string | number | boolean | readonly string[];
  readonly required?: true;
  /** An operand that takes all words that are left. */
  readonly array?: true;
  readonly names?: Named;
  /** Whether white space alone, or nothing, is a value too. */
  readonly mayBeBlank?: true;
}

/** A command line that shows how a command is used, and what it is for. */
export interface Example {
  readonly line: string;
  readonly says: string;
}

/** What a command takes, as its help, the manual and the completion tell it. */
export interface Declaration {
  readonly options: ReadonlyMap<string, Value>;
  readonly operands: ReadonlyMap<string, Value>;
  readonly examples: readonly Example[];
  readonly epilogue: string | null;
}

type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;

type Kind<Given extends Value> = Given extends { readonly array: true }
  ? string[]
  : Given extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : Given extends { readonly type: 'boolean' }
      ? boolean
      : Given extends { readonly type: 'number' }
        ? number
        : string;

type Parsed<Given extends Value> = Given extends
  { readonly required: true } | { readonly default: string | number | boolean | readonly string[] }
  ? Kind<Given>
  : Kind<Given> | undefined;

type OptionsOf<Given extends Readonly<Record<string, Value>>> = {
  readonly [Name in keyof Given & string as Camel<Name>]: Parsed<Given[Name]>;
};

/** Declares what a command takes; `Options` are the names and types of what its `run` is given. */
export interface Syntax<Options> {
  readonly declaration: Declaration;
  /** The type alone: there is no such value. */
  readonly parsed?: Options;
  positional<const Name extends string, const Given extends Value>(
    name: Name,
    value: Given,
  ): Syntax<Options & OptionsOf<{ readonly [Key in Name]: Given }>>;
  option<const Name extends string, const Given extends Value>(
    name: Name,
    value: Given,
  ): Syntax<Options & OptionsOf<{ readonly [Key in Name]: Given }>>;
  options<const Given extends Readonly<Record<string, Value>>>(
    values: Given,
  ): Syntax<Options & OptionsOf<Given>>;
  example(line: string, says: string): Syntax<Options>;
  epilogue(text: string): Syntax<Options>;
}

const nothing: Declaration = { options: new Map(), operands: new Map(), examples: [], epilogue: null };

/** Begins a declaration. */
export function newSyntax<Options>(declaration: Declaration = nothing): Syntax<Options> {
  const { options, operands, examples } = declaration;
  const withMore = (more: Partial<Declaration>): Syntax<never> => newSyntax({ ...declaration, ...more });
  return {
    declaration,
    positional: (name, value) => withMore({ operands: new Map([...operands, [name, value]]) }),
    option: (name, value) => withMore({ options: new Map([...options, [name, value]]) }),
    options: (values) => withMore({ options: new Map([...options, ...Object.entries(values)]) }),
    example: (line, says) => withMore({ examples: [...examples, { line, says }] }),
    epilogue: (text) => withMore({ epilogue: text }),
  };
}

/** The name under which `run` finds a value: `state-dir` is `stateDir`. */
export function camelCase(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** An operand as a command's usage tells it: `<key>`, `[products..]`. */
export interface Slot {
  readonly name: string;
  readonly isRequired: boolean;
  readonly takesAll: boolean;
}

/** The operands of a usage, in their order. */
export function slotsOf(usage: string): readonly Slot[] {
  return [...usage.matchAll(/([<[])([\w-]+)(\.\.)?[>\]]/g)].map(([, bracket, name = '', dots]) => ({
    name,
    isRequired: bracket === '<',
    takesAll: dots !== undefined,
  }));
}
