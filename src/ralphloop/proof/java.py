"""What stands behind a mutated file of Java: it makes of a result another one of its kind.

It compiles with Java 8 and names nothing but the JDK.  An object of the project is copied field by
field, for others may hold on to the one that was returned.
"""

BEND_IN_JAVA = """

@SuppressWarnings({"unchecked", "rawtypes"})
final class RalphBend {
  private static final Object SAME = new Object();

  static <T> T ralphBend(T value) {
    if (value == null) return null;
    Object other = other(value, 3);
    if (other == SAME) throw new IllegalStateException("ralph: it cannot be altered");
    return (T) other;
  }

  private static Object other(Object v, int depth) {
    if (v == null || depth < 0) return SAME;
    Object plain = plain(v);
    if (plain != SAME) return plain;
    if (v instanceof java.util.Optional) {
      java.util.Optional<Object> held = (java.util.Optional<Object>) v;
      Object other = held.isPresent() ? other(held.get(), depth) : SAME;
      return other == SAME ? SAME : java.util.Optional.of(other);
    }
    if (v.getClass().isArray()) return array(v, depth);
    if (v instanceof java.util.Map) return map((java.util.Map) v, depth);
    if (v instanceof java.util.Collection) return collection((java.util.Collection) v, depth);
    if (v instanceof java.util.stream.Stream) {
      return ((java.util.stream.Stream<Object>) v).map(one -> orSame(one, depth));
    }
    if (v instanceof java.util.concurrent.CompletableFuture) {
      return ((java.util.concurrent.CompletableFuture<Object>) v)
          .thenApply(one -> orSame(one, depth));
    }
    if (v instanceof java.util.Iterator) return iterator((java.util.Iterator) v, depth);
    if (v instanceof java.util.function.Supplier && isOurs(v)) {
      return (java.util.function.Supplier<Object>)
          () -> orSame(((java.util.function.Supplier<Object>) v).get(), depth);
    }
    if (v instanceof java.util.function.Predicate && isOurs(v)) {
      return ((java.util.function.Predicate<Object>) v).negate();
    }
    return isOurs(v) ? object(v, depth) : SAME;
  }

  private static Object plain(Object v) {
    if (v instanceof String) return v + "ralph";
    if (v instanceof Integer) return (Integer) v + 1;
    if (v instanceof Long) return (Long) v + 1;
    if (v instanceof Short) return (short) ((Short) v + 1);
    if (v instanceof Byte) return (byte) ((Byte) v + 1);
    if (v instanceof Character) return (char) ((Character) v + 1);
    if (v instanceof Boolean) return !(Boolean) v;
    if (v instanceof Double) return (Double) v + 1;
    if (v instanceof Float) return (Float) v + 1;
    if (v instanceof java.math.BigInteger) {
      return ((java.math.BigInteger) v).add(java.math.BigInteger.ONE);
    }
    if (v instanceof java.math.BigDecimal) {
      return ((java.math.BigDecimal) v).add(java.math.BigDecimal.ONE);
    }
    if (v instanceof StringBuilder) return new StringBuilder((StringBuilder) v).append("ralph");
    if (v instanceof Enum) return next((Enum) v);
    if (v instanceof java.time.LocalDate) return ((java.time.LocalDate) v).plusDays(1);
    if (v instanceof java.time.LocalDateTime) return ((java.time.LocalDateTime) v).plusDays(1);
    if (v instanceof java.time.ZonedDateTime) return ((java.time.ZonedDateTime) v).plusDays(1);
    if (v instanceof java.time.OffsetDateTime) return ((java.time.OffsetDateTime) v).plusDays(1);
    if (v instanceof java.time.LocalTime) return ((java.time.LocalTime) v).plusHours(1);
    if (v instanceof java.time.Instant) return ((java.time.Instant) v).plusSeconds(86400);
    if (v instanceof java.time.Duration) return ((java.time.Duration) v).plusSeconds(1);
    if (v instanceof java.util.Date && v.getClass() == java.util.Date.class) {
      return new java.util.Date(((java.util.Date) v).getTime() + 86400000L);
    }
    if (v instanceof java.util.UUID) {
      java.util.UUID id = (java.util.UUID) v;
      return new java.util.UUID(id.getMostSignificantBits(), id.getLeastSignificantBits() + 1);
    }
    if (v instanceof java.nio.file.Path) return ((java.nio.file.Path) v).resolve("ralph");
    if (v instanceof java.io.File) return new java.io.File((java.io.File) v, "ralph");
    if (v instanceof java.util.OptionalInt && ((java.util.OptionalInt) v).isPresent()) {
      return java.util.OptionalInt.of(((java.util.OptionalInt) v).getAsInt() + 1);
    }
    if (v instanceof java.util.OptionalLong && ((java.util.OptionalLong) v).isPresent()) {
      return java.util.OptionalLong.of(((java.util.OptionalLong) v).getAsLong() + 1);
    }
    if (v instanceof java.util.OptionalDouble && ((java.util.OptionalDouble) v).isPresent()) {
      return java.util.OptionalDouble.of(((java.util.OptionalDouble) v).getAsDouble() + 1);
    }
    if (v instanceof java.util.stream.IntStream) {
      return ((java.util.stream.IntStream) v).map(one -> one + 1);
    }
    if (v instanceof java.util.stream.LongStream) {
      return ((java.util.stream.LongStream) v).map(one -> one + 1);
    }
    if (v instanceof java.util.stream.DoubleStream) {
      return ((java.util.stream.DoubleStream) v).map(one -> one + 1);
    }
    return SAME;
  }

  private static Object next(Enum v) {
    Object[] all = v.getDeclaringClass().getEnumConstants();
    return all.length > 1 ? all[(v.ordinal() + 1) % all.length] : SAME;
  }

  private static Object orSame(Object v, int depth) {
    Object other = other(v, depth - 1);
    return other == SAME ? v : other;
  }

  private static Object array(Object v, int depth) {
    int length = java.lang.reflect.Array.getLength(v);
    Class<?> kind = v.getClass().getComponentType();
    if (length == 0) return java.lang.reflect.Array.newInstance(kind, 1);
    Object found = java.lang.reflect.Array.newInstance(kind, length);
    boolean altered = false;
    for (int at = 0; at < length; at++) {
      Object one = java.lang.reflect.Array.get(v, at);
      Object other = other(one, depth - 1);
      altered |= other != SAME;
      java.lang.reflect.Array.set(found, at, other == SAME ? one : other);
    }
    if (altered) return found;
    Object shorter = java.lang.reflect.Array.newInstance(kind, length - 1);
    System.arraycopy(v, 0, shorter, 0, length - 1);
    return shorter;
  }

  private static Object collection(java.util.Collection v, int depth) {
    java.util.Collection found = (java.util.Collection) made(v);
    if (found == null && v instanceof java.util.SortedSet) found = new java.util.TreeSet();
    if (found == null && v instanceof java.util.Set) found = new java.util.LinkedHashSet();
    if (found == null) found = new java.util.ArrayList();
    try {
      boolean altered = false;
      Object last = null;
      for (Object one : v) {
        Object other = other(one, depth - 1);
        altered |= other != SAME;
        last = other == SAME ? one : other;
        found.add(last);
      }
      if (v.isEmpty()) found.add(null);
      if (!altered && !v.isEmpty()) found.remove(last);
    } catch (RuntimeException error) {
      return SAME;
    }
    return found;
  }

  private static Object map(java.util.Map v, int depth) {
    java.util.Map found = (java.util.Map) made(v);
    if (found == null && v instanceof java.util.SortedMap) found = new java.util.TreeMap();
    if (found == null) found = new java.util.LinkedHashMap();
    try {
      boolean altered = false;
      for (Object one : v.entrySet()) {
        java.util.Map.Entry entry = (java.util.Map.Entry) one;
        Object other = other(entry.getValue(), depth - 1);
        altered |= other != SAME;
        found.put(entry.getKey(), other == SAME ? entry.getValue() : other);
      }
      if (!altered && !v.isEmpty()) found.remove(v.keySet().iterator().next());
      if (v.isEmpty()) found.put("ralph", null);
    } catch (RuntimeException error) {
      return SAME;
    }
    return found;
  }

  private static Object iterator(java.util.Iterator v, int depth) {
    return new java.util.Iterator() {
      public boolean hasNext() {
        return v.hasNext();
      }

      public Object next() {
        return orSame(v.next(), depth);
      }
    };
  }

  private static Object made(Object like) {
    try {
      return like.getClass().getConstructor().newInstance();
    } catch (ReflectiveOperationException | RuntimeException error) {
      return null;
    }
  }

  private static boolean isOurs(Object v) {
    String name = v.getClass().getName();
    return !name.startsWith("java.") && !name.startsWith("javax.") && !name.startsWith("jdk.")
        && !name.startsWith("sun.") && !(v instanceof Throwable) && !(v instanceof Class);
  }

  private static Object object(Object v, int depth) {
    Class<?> type = v.getClass();
    try {
      Class<?> above = type.getSuperclass();
      if (above != null && above.getName().equals("java.lang.Record")) {
        return record(v, depth);
      }
      Class<?> maker = Class.forName("sun.misc.Unsafe");
      java.lang.reflect.Field only = maker.getDeclaredField("theUnsafe");
      only.setAccessible(true);
      Object found = maker.getMethod("allocateInstance", Class.class).invoke(only.get(null), type);
      boolean altered = false;
      for (Class<?> one = type; one != null && one != Object.class; one = one.getSuperclass()) {
        for (java.lang.reflect.Field field : one.getDeclaredFields()) {
          if (java.lang.reflect.Modifier.isStatic(field.getModifiers())) continue;
          field.setAccessible(true);
          Object held = field.get(v);
          Object other = field.isSynthetic() ? SAME : other(held, depth - 1);
          if (other != SAME && !fits(field.getType(), other)) other = SAME;
          altered |= other != SAME;
          field.set(found, other == SAME ? held : other);
        }
      }
      return altered ? found : SAME;
    } catch (ReflectiveOperationException | RuntimeException error) {
      return SAME;
    }
  }

  private static Object record(Object v, int depth) throws ReflectiveOperationException {
    Object[] parts = (Object[]) Class.class.getMethod("getRecordComponents").invoke(v.getClass());
    Class<?>[] types = new Class<?>[parts.length];
    Object[] held = new Object[parts.length];
    Object[] others = new Object[parts.length];
    boolean altered = false;
    for (int at = 0; at < parts.length; at++) {
      Class<?> part = parts[at].getClass();
      types[at] = (Class<?>) part.getMethod("getType").invoke(parts[at]);
      java.lang.reflect.Field field =
          v.getClass().getDeclaredField((String) part.getMethod("getName").invoke(parts[at]));
      field.setAccessible(true);
      held[at] = field.get(v);
      Object other = other(held[at], depth - 1);
      if (other != SAME && !fits(types[at], other)) other = SAME;
      altered |= other != SAME;
      others[at] = other == SAME ? held[at] : other;
    }
    if (!altered) return SAME;
    java.lang.reflect.Constructor<?> maker = v.getClass().getDeclaredConstructor(types);
    maker.setAccessible(true);
    try {
      return maker.newInstance(others);
    } catch (java.lang.reflect.InvocationTargetException refused) {
      return oneAlone(maker, held, others);
    }
  }

  private static Object oneAlone(
      java.lang.reflect.Constructor<?> maker, Object[] held, Object[] others)
      throws ReflectiveOperationException {
    for (int at = 0; at < held.length; at++) {
      Object[] mixed = held.clone();
      mixed[at] = others[at];
      try {
        if (mixed[at] != held[at]) return maker.newInstance(mixed);
      } catch (java.lang.reflect.InvocationTargetException refused) {
        continue;
      }
    }
    return SAME;
  }

  private static boolean fits(Class<?> type, Object value) {
    return type.isPrimitive() || type.isInstance(value);
  }
}
"""
