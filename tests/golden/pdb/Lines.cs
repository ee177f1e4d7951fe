using System;

namespace Golden
{
    public static class Lines
    {
        public static int Sum(int[] numbers)
        {
            int sum = 0;
            foreach (int number in numbers)
            {
                if (number < 0)
                    throw new ArgumentException(
                        "negative",
                        nameof(numbers));
                sum += number;
            }
            return sum;
        }

        public static int Generated()
        {
            int a = 1;
#line 700 "Generated.y"
            a += 2;
#line default
            return a;
        }

        public abstract class Empty
        {
            public abstract void Nothing();
        }
    }
}
