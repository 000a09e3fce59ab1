import { createContext, isValidElement, type ComponentChildren, type VNode } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type ApiError, asApiError } from '../api.ts';
import { useCanAct } from '../daemon.tsx';
import { Command } from './command.tsx';
import { Notice } from './notice.tsx';
import { CannotAct } from './cannot-act.tsx';

/** What a person can do, as data. */
export type ActionProps = {
  /** The text of the button. */
  readonly label: string;
  /** What the button is about, for a screen reader, if the page has several such buttons. */
  readonly about?: string | undefined;
  readonly title: string;
  /** What happens, and whether it can be undone. */
  readonly consequence: ComponentChildren;
  /** The command that does the same. */
  readonly command: string | ((form: FormData) => string);
  /** The fields of a form. */
  readonly children?: ComponentChildren;
  readonly isDangerous?: boolean;
  /** It is what a page is for. */
  readonly isMain?: boolean;
  /** Does it. An element that it returns, such as one with a new secret, is shown instead of closing the dialog. */
  readonly run: (form: FormData) => Promise<unknown>;
  /** Called when it is done and the dialog is closed. */
  readonly onDone?: () => void;
};

/** A button that opens a dialog with the consequence, the command that does the same, and a form if needed. */
export function Action(props: ActionProps) {
  const canAct = useCanAct();
  const button = useRef<HTMLButtonElement>(null);
  const { dialog, isOpen, open, onClose, ...form } = useDialog(props);
  // An action may remove its own button, which has the focus then.
  useLayoutEffect(
    () => () => {
      if (button.current === document.activeElement) document.querySelector<HTMLElement>('h1')?.focus();
    },
    [],
  );
  return (
    <>
      <button
        ref={button}
        type="button"
        class={canAct && props.isMain === true ? 'primary' : undefined}
        data-dangerous={canAct && props.isDangerous}
        data-idle={!canAct}
        aria-label={props.about === undefined ? undefined : `${props.label}: ${props.about}`}
        onClick={open}
      >
        {props.label}
      </button>
      <dialog ref={dialog} onClose={onClose} aria-label={props.title}>
        {isOpen && <ActionForm {...props} {...form} />}
      </dialog>
    </>
  );
}

/** `about`: what the actions are about, if the page has several such buttons. */
export function Actions({
  list,
  about,
  onDone,
}: {
  list: readonly ActionProps[];
  about?: string | undefined;
  onDone: () => void;
}) {
  return (
    <div class="actions">
      {list.map((action) => (
        <Action key={action.label} about={about} onDone={onDone} {...action} />
      ))}
    </div>
  );
}

/** The dialog of an action. `isOpen`: it has its form, which stays until the action has ended. */
function useDialog(props: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const isRunning = useRef(false);
  const isDone = useRef(false);
  const open = (): void => {
    setOpen(true);
    if (dialog.current?.open === false) dialog.current.showModal();
  };
  // Only now: what `onDone` reads again may remove this button from the page, with its dialog.
  const onClose = (): void => {
    // An action that still runs stays: it is not done twice when the dialog is opened again, and its result is shown.
    if (isRunning.current || dialog.current?.open === true) return;
    setOpen(false);
    if (isDone.current) props.onDone?.();
    isDone.current = false;
  };
  const close = (): void => {
    if (dialog.current?.open === true) dialog.current.close();
    else if (dialog.current !== null) onClose();
  };
  const run = async (form: FormData): Promise<unknown> => {
    isRunning.current = true;
    isDone.current = false;
    try {
      const result = await props.run(form);
      isDone.current = true;
      if (isValidElement(result)) open();
      return result;
    } catch (error) {
      open();
      throw error;
    } finally {
      isRunning.current = false;
    }
  };
  return { dialog, isOpen, open, onClose, close, run };
}

type RunState = { isRunning: boolean; error: ApiError | null; result: VNode | null };

/** Runs an action once at a time; closes the dialog unless there is a result to show. */
function useRun({ run }: ActionProps, close: () => void): [RunState, (form: FormData) => Promise<void>] {
  const [state, setState] = useState<RunState>({ isRunning: false, error: null, result: null });
  const start = async (form: FormData): Promise<void> => {
    if (state.isRunning) return;
    setState({ isRunning: true, error: null, result: null });
    try {
      const returned = await run(form);
      // Most actions return the answer of the daemon, which is not for people.
      const result = isValidElement(returned) ? returned : null;
      if (result === null) close();
      else setState({ isRunning: false, error: null, result });
    } catch (caught) {
      setState({ isRunning: false, error: asApiError(caught), result: null });
    }
  };
  return [state, start];
}

function ActionForm(props: ActionProps & { close: () => void }) {
  const { title, close } = props;
  const [state, run] = useRun(props, close);
  const closing = useRef<HTMLButtonElement>(null);
  // The button that had the focus is gone.
  useLayoutEffect(() => closing.current?.focus(), [state.result]);
  if (state.result === null) return <Question {...props} state={state} run={run} />;
  return (
    <div class="dialog">
      <h2>{title}</h2>
      {state.result}
      <div class="buttons">
        <button ref={closing} type="button" onClick={close}>
          Close
        </button>
      </div>
    </div>
  );
}

function Question({
  state: { isRunning, error },
  run,
  ...props
}: Omit<ActionProps, 'run'> & {
  close: () => void;
  state: RunState;
  run: (form: FormData) => Promise<void>;
}) {
  const canAct = useCanAct();
  const form = useRef<HTMLFormElement>(null);
  const [line, setLine] = useState(() => commandOf(props, null));
  // Before a person can type: a later change of the focus would take letters to another field.
  useLayoutEffect(() => {
    form.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    // The fields have their first values now.
    setLine(commandOf(props, form.current));
  }, []);
  // The person goes on at the first field that has an error. The fields get their errors only after the layout effects.
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus(), [error]);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (form.current !== null) void run(new FormData(form.current));
  };
  return (
    <form ref={form} class="dialog" onSubmit={submit} onInput={() => setLine(commandOf(props, form.current))}>
      <h2>{props.title}</h2>
      <p>{props.consequence}</p>
      <FieldErrors.Provider value={error?.errors ?? []}>{props.children}</FieldErrors.Provider>
      {error !== null && <Refusal error={error} form={form.current} />}
      <h3>The command that does the same</h3>
      <Command line={line} />
      {!canAct && <CannotAct />}
      <div class="buttons">
        <button type="button" onClick={props.close}>
          {canAct ? 'Cancel' : 'Close'}
        </button>
        {canAct && (
          <button type="submit" class="primary" data-dangerous={props.isDangerous} disabled={isRunning}>
            {props.label}
          </button>
        )}
      </div>
    </form>
  );
}

function commandOf({ command }: Pick<ActionProps, 'command'>, form: HTMLFormElement | null): string {
  return typeof command === 'string' ? command : command(form === null ? new FormData() : new FormData(form));
}

type Errors = NonNullable<ApiError['errors']>;

/** The errors of a form, which are shown at its fields. */
const FieldErrors = createContext<Errors>([]);

/** Why the daemon refused; errors that a field of the form shows are left out. */
export function Refusal({ error, form = null }: { error: ApiError; form?: HTMLFormElement | null }) {
  const { errors = [] } = error;
  const others = errors.filter(
    ({ parameter }) =>
      (form?.querySelector(`[data-parameters~="${CSS.escape(parameter)}"]`) ?? null) === null,
  );
  return (
    <Notice tone="fail">
      <p>{others.length < errors.length ? 'Nothing was changed: see the marked fields.' : error.message}</p>
      {others.length > 0 && (
        <ul>
          {others.map(({ parameter, detail }) => (
            <li key={`${parameter} ${detail}`}>
              {parameter}: {detail}
            </li>
          ))}
        </ul>
      )}
    </Notice>
  );
}

/** The errors about a field, in its words. `parameters`: what it sends. */
function useFieldErrors(label: string, parameters: readonly string[]): readonly string[] {
  return useContext(FieldErrors)
    .filter(({ parameter }) => parameters.includes(parameter))
    .map(({ parameter, detail }) =>
      detail.startsWith(parameter) ? label + detail.slice(parameter.length) : detail,
    );
}

function ErrorsOfField({ id, errors }: { id: string; errors: readonly string[] }) {
  if (errors.length === 0) return null;
  return (
    <p class="field-error" id={id}>
      {errors.join(' ')}
    </p>
  );
}

type FieldProps = {
  readonly label: string;
  readonly name: string;
  /** The parameters that the field becomes; absent: the one with its name. */
  readonly parameters?: readonly string[];
  readonly help?: ComponentChildren;
  readonly example?: string | undefined;
  readonly type?: 'text' | 'email' | 'number' | 'search' | 'date';
  readonly value?: string;
  readonly isRequired?: boolean;
  /** What the browser accepts, as a regular expression; `help` says it in words. */
  readonly pattern?: string;
  /** A text of several lines. */
  readonly isLong?: boolean;
  readonly options?: readonly (readonly [value: string, text: string])[];
};

/** A field of a form; with `options`, a choice. */
export function Field({
  label,
  name,
  parameters = [name],
  help,
  example,
  type = 'text',
  value = '',
  isRequired = false,
  isLong = false,
  pattern,
  options,
}: FieldProps) {
  const id = useId();
  const errors = useFieldErrors(label, parameters);
  const described = [
    ...(errors.length > 0 ? [`${id}-error`] : []),
    ...(help === undefined ? [] : [`${id}-help`]),
  ];
  const shared = {
    id,
    name,
    required: isRequired,
    'data-parameters': parameters.join(' '),
    'aria-invalid': errors.length > 0 ? true : undefined,
    'aria-describedby': described.join(' ') || undefined,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isLong && <textarea {...shared} rows={3} defaultValue={value} />}
      {!isLong && options === undefined && (
        <input
          {...shared}
          type={type}
          defaultValue={value}
          placeholder={example}
          pattern={pattern}
          autocomplete="off"
        />
      )}
      {options !== undefined && (
        <select {...shared}>
          {options.map(([each, text]) => (
            <option key={each} value={each} selected={each === value}>
              {text}
            </option>
          ))}
        </select>
      )}
      <ErrorsOfField id={`${id}-error`} errors={errors} />
      {help !== undefined && (
        <p class="quiet" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

/** The text of a field; '' if it is empty. */
export function fieldText(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

/** The texts of the fields that are not empty, by their names. */
export function filled(form: FormData): Readonly<Record<string, string>> {
  const texts = [...form.keys()].map((name) => [name, fieldText(form, name)] as const);
  return Object.fromEntries(texts.filter(([, text]) => text !== ''));
}

/** The choices that are taken. */
export function taken(form: FormData, name: string): string[] {
  return form.getAll(name).filter((value) => typeof value === 'string');
}

/** Choices of which any number can be taken. `choices`: the value, and what it means. */
export function Checkboxes({
  legend,
  name,
  choices,
  checked = [],
}: {
  legend: string;
  name: string;
  choices: readonly (readonly [value: string, meaning: string])[];
  checked?: readonly string[];
}) {
  const id = useId();
  const errors = useFieldErrors(legend, [name]);
  return (
    <fieldset class="checkboxes" data-parameters={name} aria-describedby={errors.length > 0 ? id : undefined}>
      <legend>{legend}</legend>
      <ErrorsOfField id={id} errors={errors} />
      {choices.map(([value, meaning]) => (
        <label key={value}>
          <input type="checkbox" name={name} value={value} defaultChecked={checked.includes(value)} />
          <span>
            <code>{value}</code> <span class="quiet">{meaning}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
